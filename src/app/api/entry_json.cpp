// SPDX-License-Identifier: Apache-2.0
#include "app/api/entry_json.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <utility>

#include "app/api/json_values.hpp"
#include "core/rfc3339.hpp"
#include "core/utf8.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;

struct Field {
  EntryBound bound;
  std::string Entry::*column;
};

constexpr std::array<Field, 10> fields{{
    {.bound = entry_bounds::application_id, .column = &Entry::application_id},
    {.bound = entry_bounds::correlation_id, .column = &Entry::correlation_id},
    {.bound = entry_bounds::process_name, .column = &Entry::process_name},
    {.bound = entry_bounds::process_status, .column = &Entry::process_status},
    {.bound = entry_bounds::step, .column = &Entry::step},
    {.bound = entry_bounds::details, .column = &Entry::details},
    {.bound = entry_bounds::target_system, .column = &Entry::target_system},
    {.bound = entry_bounds::originating_system, .column = &Entry::originating_system},
    {.bound = entry_bounds::user_id, .column = &Entry::user_id},
    {.bound = entry_bounds::idempotency_key, .column = &Entry::idempotency_key},
}};
constexpr std::string_view timestamp = "timestamp";
/// What we say about an entry ourselves: kept as a client's own they could not be returned, and dropped they
/// would be missed.
constexpr std::array<std::string_view, 2> ours{"id", "receivedAt"};

std::string_view view(const json::string& text) {
  return {text.data(), text.size()};
}

/// A pointer's step, by RFC 6901.
std::string pointer(std::string_view name) {
  std::string result = "/";
  for (const char c : name) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return result;
}

/// JSON knows no infinity, but a number such as 1e400 is read as one. Nests no deeper than the parser allows.
bool is_finite(const json::value& value) {  // NOLINT(misc-no-recursion)
  if (const double* number = value.if_double()) return std::isfinite(*number);
  if (const json::array* array = value.if_array()) {
    return std::all_of(array->begin(), array->end(), is_finite);
  }
  if (const json::object* object = value.if_object()) {
    return std::all_of(object->begin(), object->end(),
                       [](const json::key_value_pair& member) { return is_finite(member.value()); });
  }
  return true;
}

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

/// Whether U+0000 is anywhere in it, in a name or a text. Nests no deeper than the parser allows.
bool has_nul(const json::value& value) {  // NOLINT(misc-no-recursion)
  if (const json::string* text = value.if_string()) return has_nul(view(*text));
  if (const json::array* array = value.if_array()) {
    return std::any_of(array->begin(), array->end(), [](const json::value& one) { return has_nul(one); });
  }
  if (const json::object* object = value.if_object()) {
    return std::any_of(object->begin(), object->end(), [](const json::key_value_pair& member) {
      return has_nul(std::string_view(member.key().data(), member.key().size())) || has_nul(member.value());
    });
  }
  return false;
}

/// Of a lone surrogate the parser has seen U+0000, too: see `without_lone_surrogates`.
constexpr std::string_view nul_words = " contains the character U+0000, or half of a surrogate pair";

class EntryParser {
 public:
  explicit EntryParser(TimePoint now) { entry_.occurred_at = now; }

  std::variant<Entry, Errors> parse(const json::value& value) {
    const json::object* object = value.if_object();
    if (object == nullptr) {
      refuse("", "type", "an entry is a JSON object");
      return std::move(errors_);
    }
    json::object extras;
    for (const auto& member : *object)
      take({member.key().data(), member.key().size()}, member.value(), extras);
    for (const Field& field : fields) {
      if (field.bound.required && (entry_.*field.column).empty() && !refused(field.bound.name)) {
        refuse(pointer(field.bound.name), "required", std::string(field.bound.name) + " is missing or empty");
      }
    }
    keep(extras);
    if (!errors_.empty()) return std::move(errors_);
    return std::move(entry_);
  }

 private:
  void take(std::string_view name, const json::value& value, json::object& extras) {
    if (name == timestamp) {
      take_time(value);
      return;
    }
    const auto* field =
        std::find_if(fields.begin(), fields.end(), [&](const Field& one) { return one.bound.name == name; });
    if (field != fields.end()) {
      take_text(*field, value);
    } else if (std::find(ours.begin(), ours.end(), name) == ours.end()) {
      extras[name] = value;
    } else if (!value.is_null()) {
      refuse(pointer(name), "reserved", std::string(name) + " is given by the API; choose another name");
    }
  }

  void take_time(const json::value& value) {
    if (value.is_null()) return;
    const json::string* text = value.if_string();
    const std::optional<TimePoint> time = text == nullptr ? std::nullopt : parse_time(view(*text));
    if (!time.has_value()) {
      refuse(pointer(timestamp), "time", "not a time by RFC 3339, as in 2026-06-01T10:15:30.123Z");
      return;
    }
    entry_.occurred_at = *time;
  }

  void take_text(const Field& field, const json::value& value) {
    if (value.is_null()) return;
    const json::string* text = value.if_string();
    if (text == nullptr) {
      refuse(pointer(field.bound.name), "type", std::string(field.bound.name) + " must be a string");
      return;
    }
    // The parser has refused what is no UTF-8, so that the length is known.
    const std::size_t length = field.bound.in_bytes ? text->size() : utf8_length(view(*text)).value_or(0);
    if (length > field.bound.most) {
      refuse(pointer(field.bound.name), "too-long",
             std::string(field.bound.name) + " has " + std::to_string(length) +
                 (field.bound.in_bytes ? " bytes; " : " characters; ") + std::to_string(field.bound.most) +
                 " are allowed");
    } else if (has_nul(view(*text))) {
      refuse(pointer(field.bound.name), "nul", std::string(field.bound.name) + std::string(nul_words));
    } else {
      entry_.*field.column = view(*text);
    }
  }

  void keep(const json::object& extras) {
    if (extras.empty()) return;
    for (const auto& member : extras) {
      const std::string_view name(member.key().data(), member.key().size());
      if (has_nul(name)) {
        refuse("", "nul", "a member's name" + std::string(nul_words));
      } else if (has_nul(member.value())) {
        refuse(pointer(name), "nul", "it" + std::string(nul_words));
      }
      if (is_finite(member.value())) continue;
      refuse(pointer({member.key().data(), member.key().size()}), "range",
             "it has a number that is too large for anybody to read back");
    }
    std::string text = serialized(extras);
    // Numbers take less room with exponents, and may have come so.
    if (text.size() > EntryLimits::extras_bytes &&
        json::serialize(extras).size() > EntryLimits::extras_bytes) {
      refuse("", "too-long",
             "members besides the known ones take " + std::to_string(text.size()) + " bytes; " +
                 std::to_string(EntryLimits::extras_bytes) + " are allowed");
      return;
    }
    entry_.extras = std::move(text);
  }

  void refuse(std::string field, std::string code, std::string detail) {
    errors_.push_back({std::move(field), std::move(code), std::move(detail)});
  }
  [[nodiscard]] bool refused(std::string_view name) const {
    return std::any_of(errors_.begin(), errors_.end(),
                       [&](const http::FieldError& error) { return error.field == pointer(name); });
  }

  Entry entry_;
  Errors errors_;
};

void append_member(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out += ',';
  append_text(out, name);
  out += ':';
  append_text(out, value);
}

/// The members of one JSON object go on where ours end.
void append_members(std::string& out, std::string_view object) {
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t first = object.find_first_not_of(blank);
  const std::size_t last = object.find_last_not_of(blank);
  if (first == std::string_view::npos || object[first] != '{' || object[last] != '}') return;
  const std::string_view members = object.substr(first + 1, last - first - 1);
  if (members.find_first_not_of(blank) == std::string_view::npos) return;
  out += ',';
  out += members;
}

}  // namespace

std::variant<Entry, Errors> parse_entry(const json::value& json, TimePoint now) {
  return EntryParser(now).parse(json);
}

std::optional<std::string> without_lone_surrogates(std::string_view json) {
  constexpr std::size_t escape_size = 6;  // \uXXXX
  const auto unit_at = [&](std::size_t at) -> unsigned {
    unsigned unit = 0;
    if (json.size() < at + escape_size || json[at] != '\\' || json[at + 1] != 'u') return 0;
    const char* const end = json.data() + at + escape_size;
    const auto [stop, error] = std::from_chars(json.data() + at + 2, end, unit, 16);
    return error == std::errc{} && stop == end ? unit : 0;
  };
  const auto is_high = [](unsigned unit) { return unit >= 0xD800 && unit < 0xDC00; };
  const auto is_low = [](unsigned unit) { return unit >= 0xDC00 && unit < 0xE000; };
  std::optional<std::string> repaired;
  // Outside of strings JSON has no backslash.
  for (std::size_t at = json.find('\\'); at < json.size(); at = json.find('\\', at)) {
    const unsigned unit = unit_at(at);
    if (is_high(unit) && is_low(unit_at(at + escape_size))) {
      at += 2 * escape_size;
    } else if (is_high(unit) || is_low(unit)) {
      if (!repaired.has_value()) repaired.emplace(json);
      repaired->replace(at, escape_size, "\\u0000");
      at += escape_size;
    } else {
      at += 2;
    }
  }
  return repaired;
}

void append_text(std::string& out, std::string_view text) {
  out += json::serialize(json::string_view(text.data(), text.size()));
}

void append_entry(std::string& out, const StoredEntry& stored) {
  out += R"({"id":")" + std::to_string(static_cast<std::int64_t>(stored.id)) + '"';
  for (const Field& field : fields) append_member(out, field.bound.name, stored.entry.*field.column);
  append_member(out, timestamp, format_time(stored.entry.occurred_at));
  append_member(out, "receivedAt", format_time(stored.received_at));
  append_members(out, stored.entry.extras);
  out += '}';
}

}  // namespace postrider::api
