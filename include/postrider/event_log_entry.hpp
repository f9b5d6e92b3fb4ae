// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/clock.hpp"

namespace postrider {

/// Where in its process an event happened.
enum class ProcessStatus : std::uint8_t { process_start, in_progress, process_end, error };

/// As it is written: "PROCESS_START", "IN_PROGRESS", "PROCESS_END", "ERROR".
[[nodiscard]] std::string_view to_string(ProcessStatus status) noexcept;

/// One business event for the Event Log API: who did what, in which process, at which step.
///
///     logger.log(EventLogEntry::process_start("CreateBooking", "BookingCreated")
///                    .correlation_id("a1b2c3d4")
///                    .details("Booking BK-1 created")
///                    .extra("rooms", 2));
///
/// All fields lie behind each other in one buffer, so that `log()` is a single copy; an entry that is
/// `clear()`ed and filled again needs no new memory. What is no valid UTF-8 is repaired when it is written.
/// A field that is set twice has its last value. A value type; not synchronised.
class EventLogEntry {
 public:
  enum class Field : std::uint8_t {
    application_id = 1,
    correlation_id,
    process_name,
    process_status,
    step,
    details,
    target_system,
    originating_system,
    user_id,
    timestamp,
    idempotency_key,
    extra_text,
    extra_json,
  };

  EventLogEntry() = default;
  [[nodiscard]] static EventLogEntry process_start(std::string_view process, std::string_view step);
  [[nodiscard]] static EventLogEntry process_step(std::string_view process, std::string_view step);
  [[nodiscard]] static EventLogEntry process_end(std::string_view process, std::string_view step);
  /// `what` becomes the details.
  [[nodiscard]] static EventLogEntry process_error(std::string_view process, std::string_view step,
                                                   std::string_view what);

  EventLogEntry& application_id(std::string_view text) { return set(Field::application_id, text); }
  EventLogEntry& correlation_id(std::string_view text) { return set(Field::correlation_id, text); }
  EventLogEntry& process_name(std::string_view text) { return set(Field::process_name, text); }
  EventLogEntry& process_status(ProcessStatus status) {
    return set(Field::process_status, to_string(status));
  }
  EventLogEntry& step(std::string_view text) { return set(Field::step, text); }
  EventLogEntry& details(std::string_view text) { return set(Field::details, text); }
  EventLogEntry& target_system(std::string_view text) { return set(Field::target_system, text); }
  EventLogEntry& originating_system(std::string_view text) { return set(Field::originating_system, text); }
  EventLogEntry& user_id(std::string_view text) { return set(Field::user_id, text); }
  /// When it happened. Without it, `log()` puts in the time of the call.
  EventLogEntry& timestamp(TimePoint when);
  /// What the receiver knows repeats by: 1 to 64 printable ASCII characters without spaces, quotes and
  /// backslashes, else Error(invalid_argument). Without it, `log()` gives a key that is never repeated.
  EventLogEntry& idempotency_key(std::string_view key);

  /// A member of your own. Names of the fields above, "spillSeq" and "xxh3" are refused, and so are names
  /// longer than 128 bytes: Error(invalid_argument).
  EventLogEntry& extra(std::string_view name, std::string_view text);
  /// A null pointer is an empty text.
  EventLogEntry& extra(std::string_view name, const char* text) {
    return extra(name, text == nullptr ? std::string_view() : std::string_view(text));
  }
  EventLogEntry& extra(std::string_view name, char character) {
    return extra(name, std::string_view(&character, 1));
  }
  EventLogEntry& extra(std::string_view name, bool value) {
    return put_extra(Field::extra_json, name, value ? "true" : "false");
  }
  template <std::integral T>
  EventLogEntry& extra(std::string_view name, T value) {
    return put_extra(Field::extra_json, name, std::to_string(value));
  }
  /// Not a number or infinite: null, as JSON has neither.
  EventLogEntry& extra(std::string_view name, double value);
  /// Any JSON value. Throws Error(invalid_argument) when it is not well-formed, or has what no database
  /// keeps: U+0000, a number beyond a double.
  EventLogEntry& extra_json(std::string_view name, std::string_view json);

  /// Empty when it was not set. The view lives until the entry is changed.
  [[nodiscard]] std::string_view get(Field field) const noexcept;
  [[nodiscard]] std::optional<TimePoint> timestamp() const noexcept;
  /// Of an extra, as it will be written: text without quotes, or JSON.
  [[nodiscard]] std::optional<std::string_view> get_extra(std::string_view name) const noexcept;

  [[nodiscard]] bool empty() const noexcept { return packed_.empty(); }
  void clear() noexcept {
    packed_.clear();
    faults_ = without_required;
  }

  /// Within what the Event Log API takes; `log()` refuses others as `invalid_entry`. An entry has a process
  /// and a status, its texts have no NUL, and at most so many characters: process and step 200, other names
  /// and ids 128; details have at most 64 KiB, and so have all extras together; its
  /// time is in the years 1000 to 9999.
  [[nodiscard]] bool valid() const noexcept { return faults_ == 0; }
  /// What keeps it from being valid: "processName is missing". Empty when nothing does.
  [[nodiscard]] std::string fault() const;

  /// All fields, in the order in which they were set: field, length (32 bits), bytes. The form in which
  /// entries lie in the rings.
  [[nodiscard]] std::string_view packed() const noexcept { return packed_; }
  /// The reverse; nothing when `packed` is not of this form.
  [[nodiscard]] static std::optional<EventLogEntry> unpack(std::string_view packed);

  friend bool operator==(const EventLogEntry&, const EventLogEntry&) = default;

 private:
  EventLogEntry& set(Field field, std::string_view bytes);
  EventLogEntry& put_extra(Field kind, std::string_view name, std::string_view value);
  void append(Field field, std::string_view first, std::string_view second = {});
  void note_fault(Field field, bool faulty) noexcept;
  void judge_extras();

  static constexpr std::uint16_t without_required =
      1U << static_cast<unsigned>(Field::process_name) | 1U << static_cast<unsigned>(Field::process_status);

  std::string packed_;
  // One bit for each field that is wrong or missing, one for the extras; known before `log()` asks.
  std::uint16_t faults_ = without_required;
};

}  // namespace postrider
