// SPDX-License-Identifier: Apache-2.0
// Writing is done by hand, because it is what bounds the rate at which an outage can be taken to disk;
// reading is Boost.JSON's (spill_line.cpp), and the tests read everything written here with it.
#include "logger/entry_json.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "core/utf8.hpp"
#include "logger/packed_entry.hpp"

namespace postrider::logger {
namespace {

using Field = EventLogEntry::Field;

constexpr std::size_t plain_fields = static_cast<std::size_t>(Field::idempotency_key) + 1;
constexpr std::array<std::string_view, plain_fields> names{
    "",        "applicationId", "correlationId",     "processName", "processStatus", "step",
    "details", "targetSystem",  "originatingSystem", "userId",      "timestamp",     "idempotencyKey"};

/// The order of the file format.
constexpr std::array<Field, 10> written_order{
    Field::application_id, Field::correlation_id, Field::process_name,  Field::process_status,
    Field::step,           Field::details,        Field::target_system, Field::originating_system,
    Field::timestamp,      Field::user_id};

constexpr std::size_t index(Field field) {
  return static_cast<std::size_t>(field);
}

/// How many leading bytes can be copied as they are: ASCII without control characters, quotes and
/// backslashes. Eight at a time: a byte of `flags` gets its top bit when that byte of the word needs a closer
/// look. Borrows may flag a harmless byte above an offending one, never hide one; the loop after it is exact.
std::size_t plain_prefix(std::string_view text) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101ULL;
  constexpr std::uint64_t tops = 0x8080808080808080ULL;
  const auto zero_bytes = [](std::uint64_t x) { return (x - ones) & ~x & tops; };
  std::size_t i = 0;
  for (; i + sizeof(std::uint64_t) <= text.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, sizeof word);
    const std::uint64_t flags = ((word - ones * 0x20) & ~word & tops) | (word & tops) |
                                zero_bytes(word ^ (ones * 0x22)) | zero_bytes(word ^ (ones * 0x5c)) |
                                zero_bytes(word ^ (ones * 0x7f));
    if (flags != 0) break;
  }
  const auto plain = [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; };
  while (i < text.size() && plain(text[i])) ++i;
  return i;
}

void append_escaped(std::string& out, char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      const auto byte = static_cast<unsigned char>(c);
      (out += "\\u00") += digits[byte >> 4U];
      out += digits[byte & 15U];
  }
}

void append_digits(std::string& out, unsigned value, int width) {
  std::array<char, 8> text{};
  for (int i = width; i-- > 0; value /= 10)
    text.at(static_cast<std::size_t>(i)) = static_cast<char>('0' + value % 10);
  out.append(text.data(), static_cast<std::size_t>(width));
}

void append_name(std::string& out, std::string_view name) {
  out += '"';
  out += name;
  out += "\":";
}

TimePoint time_of(std::string_view bytes, TimePoint otherwise) {
  std::int64_t count = 0;
  if (bytes.size() != sizeof count) return otherwise;
  std::memcpy(&count, bytes.data(), sizeof count);
  return TimePoint{Duration{count}};
}

}  // namespace

bool is_reserved_member(std::string_view name) noexcept {
  return name == "spillSeq" || name == "xxh3" ||
         std::find(names.begin() + 1, names.end(), name) != names.end();
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t plain = plain_prefix(text);
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    if (static_cast<unsigned char>(text.front()) < 0x80) {
      append_escaped(out, text.front());
      text.remove_prefix(1);
      continue;
    }
    // A run of other characters: repaired as a whole.
    std::size_t run = 1;
    while (run < text.size() && static_cast<unsigned char>(text[run]) >= 0x80) ++run;
    const std::string_view foreign = text.substr(0, run);
    if (utf8_length(foreign)) {
      out.append(foreign);
    } else {
      out += utf8_repaired(foreign);
    }
    text.remove_prefix(run);
  }
  out += '"';
}

void append_time(std::string& out, TimePoint time) {
  // Years that four digits can say; others are the work of a broken clock.
  constexpr TimePoint first{std::chrono::sys_days{std::chrono::year{0} / 1 / 1}};
  constexpr TimePoint last = TimePoint{std::chrono::sys_days{std::chrono::year{9999} / 12 / 31}};
  time = std::clamp(time, first, last);
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  auto micros = static_cast<std::uint64_t>((time - day).count());
  const auto fraction = static_cast<unsigned>(micros % 1'000'000);
  micros /= 1'000'000;
  append_digits(out, static_cast<unsigned>(static_cast<int>(date.year())), 4);
  out += '-';
  append_digits(out, static_cast<unsigned>(date.month()), 2);
  out += '-';
  append_digits(out, static_cast<unsigned>(date.day()), 2);
  out += 'T';
  append_digits(out, static_cast<unsigned>(micros / 3600), 2);
  out += ':';
  append_digits(out, static_cast<unsigned>(micros / 60 % 60), 2);
  out += ':';
  append_digits(out, static_cast<unsigned>(micros % 60), 2);
  out += '.';
  if (fraction % 1000 == 0) {
    append_digits(out, fraction / 1000, 3);
  } else {
    append_digits(out, fraction, 6);
  }
  out += 'Z';
}

bool append_members(std::string& out, std::string_view packed, const EntryStamp& stamp,
                    const EntryDefaults& defaults) {
  std::array<std::string_view, plain_fields> values{};
  values[index(Field::application_id)] = defaults.application_id;
  values[index(Field::originating_system)] = defaults.originating_system;
  values[index(Field::user_id)] = defaults.user_id;
  bool extras = false;
  PackedFields fields(packed);
  while (fields.next()) {
    if (fields.is_extra()) {
      extras = true;
    } else {
      values[index(fields.field())] = fields.value();
    }
  }
  if (fields.damaged()) return false;

  for (const Field field : written_order) {
    const std::string_view value = values[index(field)];
    if (field == Field::timestamp) {
      append_name(out, names[index(field)]);
      out += '"';
      append_time(out, time_of(value, stamp.time));
      out += "\",";
    } else if (!value.empty()) {
      append_name(out, names[index(field)]);
      append_json_string(out, value);
      out += ',';
    }
  }
  if (extras) {
    PackedFields again(packed);
    while (again.next()) {
      if (!again.is_extra()) continue;
      append_json_string(out, again.name());
      out += ':';
      if (again.field() == Field::extra_json) {
        out += again.value();
      } else {
        append_json_string(out, again.value());
      }
      out += ',';
    }
  }
  const std::string_view own = values[index(Field::idempotency_key)];
  append_name(out, names[index(Field::idempotency_key)]);
  ((out += '"') += is_plain_key(own) ? own : stamp.key) += '"';
  return true;
}

}  // namespace postrider::logger
