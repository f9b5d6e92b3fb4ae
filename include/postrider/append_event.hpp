// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "postrider/event.hpp"
#include "postrider/tag.hpp"

namespace postrider {

class AppendEventBuilder;

/// An event on its way into the store: an `Event` (its headers are the metadata), with tags. Checked when
/// built.
class AppendEvent {
 public:
  static constexpr std::size_t max_tags = 64;
  static constexpr std::size_t max_id_chars = 128;  ///< of correlation and causation ids

  ///     AppendEvent::builder("MoneyTransferred").tag("from", id).data(json).build()
  [[nodiscard]] static AppendEventBuilder builder(EventType type);

  [[nodiscard]] const Event& event() const noexcept { return event_; }
  [[nodiscard]] const Tags& tags() const noexcept { return tags_; }  ///< sorted, each once
  [[nodiscard]] const std::string& correlation_id() const noexcept { return correlation_id_; }
  [[nodiscard]] const std::string& causation_id() const noexcept { return causation_id_; }

  /// The same event with one tag more. Throws Error(invalid_argument) like `build`.
  [[nodiscard]] AppendEvent with(Tag tag) const;

 private:
  friend class AppendEventBuilder;
  explicit AppendEvent(Event event) : event_(std::move(event)) {}
  void set_tags(Tags tags);
  Event event_;
  Tags tags_;
  std::string correlation_id_;
  std::string causation_id_;
};

class AppendEventBuilder {
 public:
  explicit AppendEventBuilder(EventType type);

  AppendEventBuilder& id(EventId id);               ///< default: a new ULID
  AppendEventBuilder& occurred_at(TimePoint time);  ///< default: now
  /// Any other precision, for example `std::chrono::system_clock::now()`: cut to microseconds.
  template <class D>
  AppendEventBuilder& occurred_at(std::chrono::sys_time<D> time) {
    return occurred_at(std::chrono::floor<Duration>(time));
  }
  AppendEventBuilder& tag(std::string key, std::string value);
  AppendEventBuilder& tag(Tag tag);
  AppendEventBuilder& tags(Tags tags);
  AppendEventBuilder& data(std::string json);   ///< at most EventLimits::payload_bytes, as `bytes`
  AppendEventBuilder& bytes(std::string data);  ///< instead of `data`, when it is not JSON
  AppendEventBuilder& metadata(std::string name, std::string value);
  AppendEventBuilder& correlation_id(std::string id);
  AppendEventBuilder& causation_id(std::string id);

  /// Throws Error(invalid_argument) like EventBuilder::build. Without `data` or `bytes` the data is `{}`. The
  /// builder is spent afterwards.
  [[nodiscard]] AppendEvent build();
  // NOLINTNEXTLINE(google-explicit-constructor): lets `append({builder…})` read well
  operator AppendEvent() { return build(); }

 private:
  EventBuilder event_;
  Tags tags_;
  std::string correlation_id_;
  std::string causation_id_;
  bool has_data_ = false;
  bool has_bytes_ = false;
};

}  // namespace postrider
