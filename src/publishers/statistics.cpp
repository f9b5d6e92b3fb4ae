// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "postrider/error.hpp"
#include "postrider/publishers.hpp"

namespace postrider {
namespace {

constexpr std::size_t most_types = 1000;

}  // namespace

void PublishStatistics::add(std::span<const StoredEvent> events, const PublishContext& context,
                            TimePoint now) {
  if (events.empty()) return;
  const MutexLock lock(mutex_);
  ++numbers_.batches;
  numbers_.events += events.size();
  for (const StoredEvent& event : events) {
    numbers_.bytes += event.data().size();
    const bool known = numbers_.by_type.size() < most_types || numbers_.by_type.contains(event.type());
    ++numbers_.by_type[known ? event.type() : std::string()];
  }
  numbers_.by_topic[std::string(context.topic)] += events.size();
  numbers_.last_position = events.back().position();
  numbers_.last_delay = std::max(Duration::zero(), now - events.back().stored_at());
}

PublishStatistics::Numbers PublishStatistics::numbers() const {
  const MutexLock lock(mutex_);
  return numbers_;
}

StatisticsPublisher::StatisticsPublisher(std::string name, Clock& clock)
    : name_(std::move(name)), clock_(clock) {}

PublishResult StatisticsPublisher::publish_batch(std::span<const StoredEvent> events,
                                                 const PublishContext& context) {
  statistics_.add(events, context, clock_.now());
  return PublishResult::all();
}

GlobalStatisticsPublisher::GlobalStatisticsPublisher(std::shared_ptr<Publisher> behind,
                                                     std::shared_ptr<PublishStatistics> statistics,
                                                     Clock& clock)
    : behind_(std::move(behind)), statistics_(std::move(statistics)), clock_(clock) {
  if (behind_ == nullptr || statistics_ == nullptr) {
    throw Error(ErrorCode::invalid_argument, "cannot count for a publisher",
                "the publisher or the statistics are null");
  }
}

PublishResult GlobalStatisticsPublisher::publish_batch(std::span<const StoredEvent> events,
                                                       const PublishContext& context) {
  PublishResult result = behind_->publish_batch(events, context);
  statistics_->add(events.first(result.count(events.size())), context, clock_.now());
  return result;
}

}  // namespace postrider
