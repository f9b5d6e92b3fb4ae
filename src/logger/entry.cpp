// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/json_text.hpp"
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
  constexpr std::size_t depth = 32;
  if (const auto fault = json_fault(json, depth)) {
    throw Error(ErrorCode::invalid_argument, "the extra '" + utf8_repaired(name) + "' is no JSON", *fault);
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
  return *this;
}

EventLogEntry& EventLogEntry::put_extra(Field kind, std::string_view name, std::string_view value) {
  constexpr std::size_t longest = 128;
  if (name.empty() || name.size() > longest || logger::is_reserved_member(name)) {
    throw Error(ErrorCode::invalid_argument,
                "an extra cannot have the name '" + utf8_repaired(utf8_prefix(name, longest)) + "'",
                "names have 1 to 128 bytes and differ from those of an entry's own fields, and from id and "
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
  std::int64_t count = 0;
  if (bytes.size() != sizeof count) return std::nullopt;
  std::memcpy(&count, bytes.data(), sizeof count);
  return TimePoint{Duration{count}};
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
  return entry;
}

}  // namespace postrider
