// SPDX-License-Identifier: Apache-2.0
// For those who have spdlog; the library itself does not need it.
#pragma once

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "postrider/async_logger.hpp"

namespace postrider {

/// Messages of spdlog as events of the event log:
///
///     auto log = std::make_shared<spdlog::logger>("shop", std::make_shared<SpdlogSink>(logger, "Shop"));
///     log->error("no room left");   // processStatus ERROR, step "shop", details "no room left", level
///     "error"
///
/// From `error` on the status is ERROR, below it IN_PROGRESS. A message that is too long for the details of
/// an event (64 KiB) is shortened, and says so at its end. The AsyncEventLogger is shared with the sink. With
/// `SpdlogSink_st` the logger that owns it is used by one thread.
template <class Lock>
class BasicSpdlogSink final : public spdlog::sinks::base_sink<Lock> {
 public:
  /// `process` becomes the processName of all events.
  BasicSpdlogSink(std::shared_ptr<AsyncEventLogger> logger, std::string process)
      : logger_(std::move(logger)), process_(std::move(process)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto text = [](const spdlog::string_view_t& view) {
      return std::string_view(view.data(), view.size());
    };
    entry_.clear();  // keeps its memory
    entry_.process_name(process_)
        .process_status(message.level >= spdlog::level::err ? ProcessStatus::error
                                                            : ProcessStatus::in_progress)
        .step(message.logger_name.size() == 0 ? std::string_view("log") : text(message.logger_name))
        .timestamp(std::chrono::time_point_cast<Duration>(message.time))
        .extra("level", text(spdlog::level::to_string_view(message.level)));
    put_details(text(message.payload));
    logger_->log(entry_);
  }
  /// What fits: all of it, or its beginning.
  void put_details(std::string_view text) {
    constexpr std::size_t most = 64U << 10U;
    entry_.details(text);
    // What is no UTF-8 is repaired, and may be three times as long then.
    for (std::size_t room : {most, most / 3}) {
      if (entry_.valid() || text.size() <= room / 3) return;
      const std::string mark = "… (shortened from " + std::to_string(text.size()) + " bytes)";
      std::size_t end = std::min(text.size(), room - mark.size());
      while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
      entry_.details(std::string(text.substr(0, end)) + mark);
    }
  }
  void flush_() override { (void)logger_->flush(std::chrono::seconds{1}); }

  std::shared_ptr<AsyncEventLogger> logger_;
  const std::string process_;
  EventLogEntry entry_;  // protected by the base class's lock
};

using SpdlogSink = BasicSpdlogSink<std::mutex>;
using SpdlogSink_st = BasicSpdlogSink<spdlog::details::null_mutex>;

}  // namespace postrider
