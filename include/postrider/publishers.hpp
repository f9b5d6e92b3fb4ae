// SPDX-License-Identifier: Apache-2.0
// Publishers that need nothing but this library: for a look at what goes by, and for numbers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"
#include "postrider/publisher.hpp"

namespace postrider {

/// Writes one line per event into a log: position, type, tags, id.
class LogPublisher final : public Publisher {
 public:
  explicit LogPublisher(LogCallback log = log_to_stderr(LogLevel::info), LogLevel level = LogLevel::info,
                        std::string name = "LogPublisher");

  PublishResult publish_batch(std::span<const StoredEvent> events, const PublishContext& context) override;
  std::string name() const override { return name_; }

 private:
  LogCallback log_;
  LogLevel level_;
  std::string name_;
};

/// What went through a publisher, or through many. Thread-safe.
class PublishStatistics {
 public:
  struct Numbers {
    std::uint64_t events = 0;
    std::uint64_t bytes = 0;
    std::uint64_t batches = 0;
    Position last_position{};
    Duration last_delay{};  ///< from being stored to being published, of the last event
    std::map<std::string, std::uint64_t> by_type{};  ///< beyond 1000 types: under ""
    std::map<std::string, std::uint64_t> by_topic{};
  };
  void add(std::span<const StoredEvent> events, const PublishContext& context, TimePoint now)
      POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] Numbers numbers() const POSTRIDER_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  Numbers numbers_ POSTRIDER_GUARDED_BY(mutex_);
};

/// Counts a topic's events, and publishes them nowhere.
class StatisticsPublisher final : public Publisher {
 public:
  explicit StatisticsPublisher(std::string name = "StatisticsPublisher", Clock& clock = Clock::system());

  PublishResult publish_batch(std::span<const StoredEvent> events, const PublishContext& context) override;
  std::string name() const override { return name_; }
  std::size_t parallel() const noexcept override { return 64; }
  [[nodiscard]] PublishStatistics::Numbers numbers() const { return statistics_.numbers(); }

 private:
  std::string name_;
  Clock& clock_;
  PublishStatistics statistics_;
};

/// Stands before another publisher, has its name, and counts what that one has taken, together with all
/// others that share the same statistics.
class GlobalStatisticsPublisher final : public Publisher {
 public:
  GlobalStatisticsPublisher(std::shared_ptr<Publisher> behind, std::shared_ptr<PublishStatistics> statistics,
                            Clock& clock = Clock::system());

  PublishResult publish_batch(std::span<const StoredEvent> events, const PublishContext& context) override;
  std::string name() const override { return behind_->name(); }
  bool healthy() const override { return behind_->healthy(); }
  PublishMode mode() const noexcept override { return behind_->mode(); }
  std::size_t parallel() const noexcept override { return behind_->parallel(); }

 private:
  std::shared_ptr<Publisher> behind_;
  std::shared_ptr<PublishStatistics> statistics_;
  Clock& clock_;
};

}  // namespace postrider
