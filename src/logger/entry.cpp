// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/entry_limits.hpp"
#include "core/json_text.hpp"
#include "core/rfc3339.hpp"
#include "core/utf8.hpp"
#include "logger/entry_json.hpp"
#include "logger/packed_entry.hpp"
#include "postrider/error.hpp"

namespace postrider {

using logger::PackedFields;

namespace logger {

bool is_plain_key(std::string_view key) noexcept {
  const auto plain = [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\'; };
  return !key.empty() && key.size() <= max_key_size && std::all_of(key.begin(), key.end(), plain);
}

}  // namespace logger

std::string_view to_string(ProcessStatus status) noexcept {
  switch (status) {
    case ProcessStatus::process_start:
      return "PROCESS_START";
    case ProcessStatus::in_progress:
      return "IN_PROGRESS";
    case ProcessStatus::process_end:
      return "PROCESS_END";
    case ProcessStatus::error:
      return "ERROR";
  }
  return "UNKNOWN";
}

namespace {

const EntryBound* bound_of(EventLogEntry::Field field) noexcept {
  using Field = EventLogEntry::Field;
  switch (field) {
    case Field::application_id:
      return &entry_bounds::application_id;
    case Field::correlation_id:
      return &entry_bounds::correlation_id;
    case Field::process_name:
      return &entry_bounds::process_name;
    case Field::process_status:
      return &entry_bounds::process_status;
    case Field::step:
      return &entry_bounds::step;
    case Field::details:
      return &entry_bounds::details;
    case Field::target_system:
      return &entry_bounds::target_system;
    case Field::originating_system:
      return &entry_bounds::originating_system;
    case Field::user_id:
      return &entry_bounds::user_id;
    case Field::idempotency_key:
      return &entry_bounds::idempotency_key;
    case Field::timestamp:
    case Field::extra_text:
    case Field::extra_json:
      return nullptr;
  }
  return nullptr;
}

/// As it will be sent: what is no UTF-8 is repaired first.
std::size_t sent_length(std::string_view text, bool in_bytes) {
  const auto characters = utf8_length(text);
  if (characters) return in_bytes ? text.size() : *characters;
  const std::string repaired = utf8_repaired(text);
  return in_bytes ? repaired.size() : utf8_length(repaired).value_or(repaired.size());
}

TimePoint time_in(std::string_view bytes) {
  std::int64_t count = 0;
  std::memcpy(&count, bytes.data(), sizeof count);
  return TimePoint{Duration{count}};
}

bool is_faulty(EventLogEntry::Field field, std::string_view text) {
  if (field == EventLogEntry::Field::timestamp) {
    const TimePoint time = time_in(text);
    return time < first_time || time >= end_of_time;
  }
  const EntryBound* const bound = bound_of(field);
  if (bound == nullptr) return false;
  // The logger's own id stands in for an application's that is not given.
  if (text.empty()) return bound->required && field != EventLogEntry::Field::application_id;
  if (text.find('\0') != std::string_view::npos) return true;
  // A bad byte becomes one character of three bytes.
  if (text.size() <= (bound->in_bytes ? bound->most / 3 : bound->most)) return false;
  return sent_length(text, bound->in_bytes) > bound->most;
}

/// Why `is_faulty` says yes.
std::string fault_of(EventLogEntry::Field field, std::string_view text) {
  if (field == EventLogEntry::Field::timestamp) return "timestamp is not in the years 1000 to 9999";
  const EntryBound& bound = *bound_of(field);
  std::string fault(bound.name);
  if (text.empty()) return fault += " is missing";
  if (text.find('\0') != std::string_view::npos) return fault += " has a NUL in it";
  return fault +=
         " has more than " + std::to_string(bound.most) + (bound.in_bytes ? " bytes" : " characters");
}

EventLogEntry entry_of(ProcessStatus status, std::string_view process, std::string_view step) {
  EventLogEntry entry;
  entry.process_name(process).process_status(status).step(step);
  return entry;
}

}  // namespace

EventLogEntry EventLogEntry::process_start(std::string_view process, std::string_view step) {
  return entry_of(ProcessStatus::process_start, process, step);
}
EventLogEntry EventLogEntry::process_step(std::string_view process, std::string_view step) {
  return entry_of(ProcessStatus::in_progress, process, step);
}
EventLogEntry EventLogEntry::process_end(std::string_view process, std::string_view step) {
  return entry_of(ProcessStatus::process_end, process, step);
}
EventLogEntry EventLogEntry::process_error(std::string_view process, std::string_view step,
                                           std::string_view what) {
  EventLogEntry entry = entry_of(ProcessStatus::error, process, step);
  entry.details(what);
  return entry;
}

EventLogEntry& EventLogEntry::timestamp(TimePoint when) {
  const std::int64_t count = when.time_since_epoch().count();
  std::array<char, sizeof count> bytes{};
  std::memcpy(bytes.data(), &count, sizeof count);
  return set(Field::timestamp, {bytes.data(), bytes.size()});
}

EventLogEntry& EventLogEntry::idempotency_key(std::string_view key) {
  if (!logger::is_plain_key(key)) {
    throw Error(
        ErrorCode::invalid_argument,
        "'" + utf8_repaired(utf8_prefix(key, logger::max_key_size + 1)) + "' cannot be an idempotency key",
        "it must be 1 to 64 printable ASCII characters without spaces, quotes and backslashes",
        "give a ULID or a UUID, or none to get a new key");
  }
  return set(Field::idempotency_key, key);
}

EventLogEntry& EventLogEntry::extra(std::string_view name, std::string_view text) {
  return put_extra(Field::extra_text, name, text);
}

EventLogEntry& EventLogEntry::extra(std::string_view name, double value) {
  if (!std::isfinite(value)) return put_extra(Field::extra_json, name, "null");
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return put_extra(Field::extra_json, name, {text.data(), static_cast<std::size_t>(end.ptr - text.data())});
}

EventLogEntry& EventLogEntry::extra_json(std::string_view name, std::string_view json) {
  constexpr std::size_t depth = 31;  // the event around it is one level more
  if (const auto fault = stored_json_fault(json, depth)) {
    throw Error(ErrorCode::invalid_argument,
                "the extra '" + utf8_repaired(name) + "' is no JSON that can be stored", *fault);
  }
  // A line of a spill file is one line; outside strings a line break is only white space.
  std::string line(json);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return put_extra(Field::extra_json, name, line);
}

EventLogEntry& EventLogEntry::set(Field field, std::string_view bytes) {
  PackedFields fields(packed_);
  while (fields.next()) {
    if (fields.field() != field) continue;
    const std::size_t size = PackedFields::head + fields.value().size();
    packed_.erase(packed_.size() - fields.rest() - size, size);
    break;
  }
  append(field, bytes);
  note_fault(field, is_faulty(field, bytes));
  return *this;
}

void EventLogEntry::note_fault(Field field, bool faulty) noexcept {
  const unsigned bit = 1U << static_cast<unsigned>(field);
  faults_ = static_cast<std::uint16_t>(faulty ? faults_ | bit : faults_ & ~bit);
}

void EventLogEntry::judge_extras() {
  constexpr std::size_t longest_escape = 6;
  bool nul = false;
  PackedFields texts(packed_);
  while (texts.next())
    nul = nul || (texts.field() == Field::extra_text && texts.value().find('\0') != std::string_view::npos);
  if (nul || packed_.size() <= EntryLimits::extras_bytes / longest_escape)
    return note_fault(Field::extra_text, nul);
  std::string text = "{";
  PackedFields fields(packed_);
  while (fields.next()) {
    if (!fields.is_extra()) continue;
    if (text.size() > 1) text += ',';
    logger::append_json_string(text, fields.name());
    text += ':';
    if (fields.field() == Field::extra_text) {
      logger::append_json_string(text, fields.value());
    } else {
      text += fields.value();
    }
  }
  note_fault(Field::extra_text, text.size() + 1 > EntryLimits::extras_bytes);
}

EventLogEntry& EventLogEntry::put_extra(Field kind, std::string_view name, std::string_view value) {
  constexpr std::size_t longest = 128;
  if (name.empty() || name.size() > longest || name.find('\0') != std::string_view::npos ||
      logger::is_reserved_member(name)) {
    throw Error(ErrorCode::invalid_argument,
                "an extra cannot have the name '" + utf8_repaired(utf8_prefix(name, longest)) + "'",
                "names have 1 to 128 bytes, none of them NUL, and differ from those of an entry's own "
                "fields, and from id and "
                "receivedAt, which the Event Log API gives",
                "choose another name");
  }
  const auto size = static_cast<std::uint16_t>(name.size());
  std::string head(sizeof size, '\0');
  std::memcpy(head.data(), &size, sizeof size);
  head += name;
  PackedFields fields(packed_);
  while (fields.next()) {
    if (!fields.is_extra() || fields.name() != name) continue;
    const std::size_t whole = PackedFields::head + head.size() + fields.value().size();
    packed_.erase(packed_.size() - fields.rest() - whole, whole);
    break;
  }
  append(kind, head, value);
  judge_extras();
  return *this;
}

void EventLogEntry::append(Field field, std::string_view first, std::string_view second) {
  const auto size = static_cast<std::uint32_t>(first.size() + second.size());
  std::array<char, PackedFields::head> head{static_cast<char>(field)};
  std::memcpy(head.data() + 1, &size, sizeof size);
  packed_.append(head.data(), head.size()).append(first).append(second);
}

std::string_view EventLogEntry::get(Field field) const noexcept {
  PackedFields fields(packed_);
  while (fields.next()) {
    if (fields.field() == field && !fields.is_extra()) return fields.value();
  }
  return {};
}

std::optional<TimePoint> EventLogEntry::timestamp() const noexcept {
  const std::string_view bytes = get(Field::timestamp);
  if (bytes.size() != sizeof(std::int64_t)) return std::nullopt;
  return time_in(bytes);
}

std::string EventLogEntry::fault() const {
  for (auto field = Field::application_id; field <= Field::idempotency_key;
       field = static_cast<Field>(static_cast<unsigned>(field) + 1)) {
    if ((faults_ & 1U << static_cast<unsigned>(field)) != 0) return fault_of(field, get(field));
  }
  if (valid()) return {};
  PackedFields fields(packed_);
  while (fields.next()) {
    if (fields.field() == Field::extra_text && fields.value().find('\0') != std::string_view::npos)
      return "the extra '" + utf8_repaired(fields.name()) + "' has a NUL in it";
  }
  return "the extras have more than " + std::to_string(EntryLimits::extras_bytes) + " bytes together";
}

std::optional<std::string_view> EventLogEntry::get_extra(std::string_view name) const noexcept {
  PackedFields fields(packed_);
  while (fields.next()) {
    if (fields.is_extra() && fields.name() == name) return fields.value();
  }
  return std::nullopt;
}

std::optional<EventLogEntry> EventLogEntry::unpack(std::string_view packed) {
  PackedFields fields(packed);
  while (fields.next()) {
  }
  if (fields.damaged()) return std::nullopt;
  EventLogEntry entry;
  entry.packed_ = packed;
  PackedFields each(packed);
  while (each.next()) entry.note_fault(each.field(), is_faulty(each.field(), each.value()));
  entry.judge_extras();
  return entry;
}

}  // namespace postrider
