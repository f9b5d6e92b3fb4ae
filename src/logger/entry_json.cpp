// SPDX-License-Identifier: Apache-2.0
// Writing is done by hand, because it is what bounds the rate at which an outage can be taken to disk;
// reading is Boost.JSON's (spill_line.cpp), and the tests read everything written here with it.
#include "logger/entry_json.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "logger/packed_entry.hpp"

namespace postrider::logger {
namespace {

using Field = EventLogEntry::Field;

constexpr std::size_t plain_fields = static_cast<std::size_t>(Field::idempotency_key) + 1;
constexpr std::array<std::string_view, plain_fields> names{
    "",        "applicationId", "correlationId",     "processName", "processStatus", "step",
    "details", "targetSystem",  "originatingSystem", "userId",      "timestamp",     "idempotencyKey"};

constexpr std::size_t index(Field field) {
  return static_cast<std::size_t>(field);
}

/// `"name":"value",` with a name whose length the compiler knows. The value is a part of what ends at `end`.
template <Field field>
char* put_member(char* out, std::string_view value, const char* end) {
  static constexpr auto opening = [] {
    constexpr std::string_view name = names[index(field)];
    std::array<char, name.size() + 4> text{};
    text.front() = '"';
    std::copy(name.begin(), name.end(), text.begin() + 1);
    text[name.size() + 1] = '"';
    text[name.size() + 2] = ':';
    text[name.size() + 3] = '"';
    return text;
  }();
  if (value.empty()) return out;
  std::memcpy(out, opening.data(), opening.size());
  return put(put_escaped_part(out + opening.size(), value, end), "\",");
}

/// Where the fields of a packed entry are. Offsets and not views: a third of the bytes to set to nothing for
/// each event.
class Places {
 public:
  explicit Places(std::string_view packed) noexcept : packed_(packed) {}
  void set(Field field, std::string_view value) noexcept {
    places_[index(field)] = {static_cast<std::uint32_t>(value.data() - packed_.data()),
                             static_cast<std::uint32_t>(value.size())};
  }
  [[nodiscard]] bool has(Field field) const noexcept { return places_[index(field)].at != 0; }
  [[nodiscard]] std::string_view value(Field field) const noexcept {
    return {packed_.data() + places_[index(field)].at, places_[index(field)].size};
  }
  [[nodiscard]] const char* end() const noexcept { return packed_.data() + packed_.size(); }

 private:
  struct Place {
    std::uint32_t at = 0;  // no value begins where the first head stands
    std::uint32_t size = 0;
  };
  std::string_view packed_;
  std::array<Place, plain_fields> places_{};
};

template <Field field>
char* put_member(char* out, const Places& places) {
  return put_member<field>(out, places.value(field), places.end());
}

template <Field field>
char* put_member(char* out, const Places& places, const std::string& otherwise) {
  if (places.has(field)) return put_member<field>(out, places);
  return put_member<field>(out, otherwise, otherwise.data() + otherwise.size());
}

TimePoint time_of(std::string_view bytes, TimePoint otherwise) {
  std::int64_t count = 0;
  if (bytes.size() != sizeof count) return otherwise;
  std::memcpy(&count, bytes.data(), sizeof count);
  return TimePoint{Duration{count}};
}

}  // namespace

bool is_reserved_member(std::string_view name) noexcept {
  // The last two are given by the Event Log API, which refuses events that have them.
  return name == "spillSeq" || name == "xxh3" || name == "id" || name == "receivedAt" ||
         std::find(names.begin() + 1, names.end(), name) != names.end();
}

void append_json_string(std::string& out, std::string_view text) {
  const std::size_t before = out.size();
  out.resize(before + escaped_room(text.size()) + 2);
  char* const begin = out.data();
  char* end = put(begin + before, "\"");
  end = put(put_escaped(end, text), "\"");
  out.resize(static_cast<std::size_t>(end - begin));
}

void append_time(std::string& out, TimePoint time) {
  std::array<char, TimeWriter::room> text{};
  TimeWriter writer;
  out.append(text.data(), writer.put(text.data(), time));
}

std::size_t members_room(std::string_view packed, const EntryStamp& stamp,
                         const EntryDefaults& defaults) noexcept {
  // Names and punctuation of all plain fields; that of extras is less than what their heads are multiplied
  // to.
  constexpr std::size_t fixed = 512;
  const std::size_t by_default =
      defaults.application_id.size() + defaults.originating_system.size() + defaults.user_id.size();
  return escaped_room(packed.size() + by_default + stamp.key.size()) + fixed;
}

char* write_members(char* out, std::string_view packed, const EntryStamp& stamp,
                    const EntryDefaults& defaults, TimeWriter& times) {
  Places places(packed);
  bool extras = false;
  PackedFields fields(packed);
  while (fields.next()) {
    if (fields.is_extra()) {
      extras = true;
    } else {
      places.set(fields.field(), fields.value());
    }
  }
  if (fields.damaged()) return nullptr;

  // The order of the file format.
  out = put_member<Field::application_id>(out, places, defaults.application_id);
  out = put_member<Field::correlation_id>(out, places);
  out = put_member<Field::process_name>(out, places);
  out = put_member<Field::process_status>(out, places);
  out = put_member<Field::step>(out, places);
  out = put_member<Field::details>(out, places);
  out = put_member<Field::target_system>(out, places);
  out = put_member<Field::originating_system>(out, places, defaults.originating_system);
  out = put(out, R"("timestamp":")");
  out = put(times.put(out, time_of(places.value(Field::timestamp), stamp.time)), "\",");
  out = put_member<Field::user_id>(out, places, defaults.user_id);
  if (extras) {
    PackedFields again(packed);
    while (again.next()) {
      if (!again.is_extra()) continue;
      out = put(put_escaped(put(out, "\""), again.name()), "\":");
      if (again.field() == Field::extra_json) {
        out = put(out, again.value());
      } else {
        out = put(put_escaped(put(out, "\""), again.value()), "\"");
      }
      out = put(out, ",");
    }
  }
  const std::string_view own = places.value(Field::idempotency_key);
  out = put(out, R"("idempotencyKey":")");
  return put(put(out, is_plain_key(own) ? own : stamp.key), "\"");
}

bool append_members(std::string& out, std::string_view packed, const EntryStamp& stamp,
                    const EntryDefaults& defaults) {
  const std::size_t before = out.size();
  out.resize(before + members_room(packed, stamp, defaults));
  TimeWriter times;
  const char* const end = write_members(out.data() + before, packed, stamp, defaults, times);
  out.resize(end == nullptr ? before : static_cast<std::size_t>(end - out.data()));
  return end != nullptr;
}

}  // namespace postrider::logger
