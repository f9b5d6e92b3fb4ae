// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"
#include "storage/wake_channel.hpp"

namespace postrider::sqlite {

/// The file that processes wake each other by: a number for each topic, which changes with each signal. It is
/// made when it is first needed, and made again when somebody has removed it.
class WakeFile {
 public:
  /// Throws Error(unavailable).
  explicit WakeFile(const std::string& database);
  ~WakeFile();
  WakeFile(const WakeFile&) = delete;
  WakeFile& operator=(const WakeFile&) = delete;

  /// Whether it has been removed, or another one is in its place.
  [[nodiscard]] bool gone() const noexcept;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t number(std::string_view topic) const;
  void change(std::string_view topic, std::uint64_t number) const;

 private:
  const std::string path_;
  int fd_;
};

/// SQLite has no signals; the kernel tells who watches a file (inotify) that it was written. A file beside
/// the database, because that one changes with every commit, our own progress included, and with each
/// checkpoint.
class SqliteWakeChannel final : public WakeChannel {
 public:
  SqliteWakeChannel(std::string database, LogCallback log);

  void notify(std::string_view topic) override POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] std::unique_ptr<Subscription> listen(std::string_view topic,
                                                     std::function<void()> on_wake) override;

 private:
  const std::string database_;
  const LogCallback log_;
  Mutex mutex_;
  std::unique_ptr<WakeFile> file_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::sqlite
