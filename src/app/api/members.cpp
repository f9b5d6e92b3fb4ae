// SPDX-License-Identifier: Apache-2.0
#include "app/api/members.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <utility>

#include "app/api/routes.hpp"
#include "core/age.hpp"
#include "core/nearest.hpp"
#include "core/rfc3339.hpp"
#include "core/utf8.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;

constexpr std::string_view time_hint =
    "write it by RFC 3339, as in 2026-06-01T10:15:30Z, in the years 1000 to 9999";

std::string checked_text(std::string_view name, std::string text) {
  if (text.find('\0') != std::string::npos || !utf8_length(text)) {
    refuse_invalid(std::string(name) + " is not valid UTF-8 without U+0000");
  }
  return text;
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

std::optional<std::string> unhex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    unsigned value = 0;
    const char* const end = text.data() + i + 2;
    const auto [stop, error] = std::from_chars(text.data() + i, end, value, 16);
    if (error != std::errc{} || stop != end) return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

/// What a query asks for, as a short number. FNV-1a, because a cursor may come back to another process.
std::string mark_of(const http::Request& request) {
  http::Fields asked;
  for (const auto& [name, value] : request.query) {
    if (name != "limit" && name != "cursor") asked.emplace_back(name, value);
  }
  std::stable_sort(asked.begin(), asked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::uint32_t hash = 2166136261U;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    hash = (hash ^ 0xFFU) * 16777619U;  // no text has this byte
  };
  for (const std::string& segment : request.path) add(segment);
  for (const auto& [name, value] : asked) {
    add(name);
    add(value);
  }
  return std::to_string(hash);
}

[[noreturn]] void refuse_cursor() {
  refuse_invalid(
      "cursor does not come from a page of this list",
      "take nextCursor of the page before, with the same other parameters; leave it out for the first");
}

}  // namespace

Members::Members(const json::object& object, std::span<const std::string_view> known, std::string where,
                 Nulls nulls)
    : object_(object), where_(std::move(where)) {
  for (const auto& member : object) {
    const std::string_view name(member.key().data(), member.key().size());
    if (std::find(known.begin(), known.end(), name) != known.end()) {
      if (member.value().is_null() && nulls == Nulls::refused)
        refuse_invalid(path(name) + " is null", "leave it out, or give it a value");
      continue;
    }
    const std::string_view nearest = nearest_of(name, known);
    std::string all;
    for (const std::string_view one : known) all += (all.empty() ? "there are " : ", ") + path(one);
    refuse_invalid("there is no member '" + path(name) + "' here",
                   nearest.empty() ? all : "did you mean " + path(nearest) + "?");
  }
}

const json::value* Members::value(std::string_view name) const {
  const json::value* const found = object_.if_contains(json::string_view(name.data(), name.size()));
  return found == nullptr || found->is_null() ? nullptr : found;
}

bool Members::has(std::string_view name) const {
  return value(name) != nullptr;
}

std::optional<std::string> Members::text(std::string_view name) const {
  const json::value* const found = value(name);
  if (found == nullptr) return std::nullopt;
  const json::string* const text = found->if_string();
  if (text == nullptr) refuse_invalid(path(name) + " must be a text");
  return checked_text(path(name), std::string(text->data(), text->size()));
}

std::optional<std::int64_t> Members::number(std::string_view name, std::int64_t least,
                                            std::int64_t most) const {
  const json::value* const found = value(name);
  if (found == nullptr) return std::nullopt;
  const std::int64_t* const number = found->if_int64();
  if (number == nullptr || *number < least || *number > most) {
    refuse_invalid(path(name) + " must be a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most));
  }
  return *number;
}

std::optional<Duration> Members::seconds(std::string_view name, std::int64_t most) const {
  const json::value* const found = value(name);
  if (found == nullptr) return std::nullopt;
  const double* const fraction = found->if_double();
  const std::int64_t* const whole = found->if_int64();
  const double number = fraction != nullptr ? *fraction : whole != nullptr ? static_cast<double>(*whole) : -1;
  if (!(number >= 0 && number <= static_cast<double>(most))) {
    refuse_invalid(path(name) + " must be a number of seconds from 0 to " + std::to_string(most));
  }
  return Duration{static_cast<std::int64_t>(std::llround(number * 1e6))};
}

std::optional<bool> Members::flag(std::string_view name) const {
  const json::value* const found = value(name);
  if (found == nullptr) return std::nullopt;
  const bool* const flag = found->if_bool();
  if (flag == nullptr) refuse_invalid(path(name) + " must be true or false");
  return *flag;
}

std::optional<TimePoint> Members::time(std::string_view name) const {
  const std::optional<std::string> written = text(name);
  if (!written) return std::nullopt;
  const std::optional<TimePoint> time = parse_time(*written);
  if (!time) refuse_invalid(path(name) + " is not a time", std::string(time_hint));
  return time;
}

std::optional<std::vector<std::string>> Members::texts(std::string_view name) const {
  const json::value* const found = value(name);
  if (found == nullptr) return std::nullopt;
  std::vector<std::string> all;
  const auto add = [&](const json::value& one) {
    const json::string* const text = one.if_string();
    if (text == nullptr) refuse_invalid(path(name) + " must be a text or a list of texts");
    all.push_back(checked_text(path(name), std::string(text->data(), text->size())));
  };
  if (const json::array* const list = found->if_array()) {
    for (const json::value& one : *list) add(one);
  } else {
    add(*found);
  }
  return all;
}

std::optional<std::vector<EventId>> Members::event_ids(std::string_view name) const {
  const std::optional<std::vector<std::string>> ids = texts(name);
  if (!ids) return std::nullopt;
  return std::vector<EventId>(ids->begin(), ids->end());
}

const json::object& Members::filter(std::string_view example) const {
  const json::object* const found = object("filter");
  if (found == nullptr) {
    refuse_invalid("filter is missing",
                   "say which: {\"filter\": {" + std::string(example) + "}}, or {\"filter\": {}} for all");
  }
  return *found;
}

std::optional<std::vector<std::int64_t>> Members::numbers(std::string_view name) const {
  const json::value* const found = value(name);
  if (found == nullptr) return std::nullopt;
  std::vector<std::int64_t> all;
  const json::array* const list = found->if_array();
  if (list == nullptr) refuse_invalid(path(name) + " must be a list of whole numbers");
  for (const json::value& one : *list) {
    const std::int64_t* const number = one.if_int64();
    if (number == nullptr) refuse_invalid(path(name) + " must be a list of whole numbers");
    all.push_back(*number);
  }
  return all;
}

const json::object* Members::object(std::string_view name) const {
  const json::value* const found = value(name);
  if (found == nullptr) return nullptr;
  if (!found->is_object()) refuse_invalid(path(name) + " must be an object");
  return &found->get_object();
}

std::optional<TimePoint> query_time(const http::Request& request, std::string_view name) {
  const std::optional<std::string> text = query_value(request, name);
  if (!text) return std::nullopt;
  const std::optional<TimePoint> time = parse_time(*text);
  if (!time)
    refuse_invalid(std::string(name) + " is not a time", std::string(time_hint) + "; a + is written %2B");
  return time;
}

std::optional<std::string> query_text(const http::Request& request, std::string_view name) {
  std::optional<std::string> text = query_value(request, name);
  if (!text) return std::nullopt;
  return checked_text(name, std::move(*text));
}

std::optional<std::vector<std::string>> query_texts(const http::Request& request, std::string_view name) {
  std::vector<std::string> all;
  for (const auto& [key, value] : request.query) {
    if (key == name) all.push_back(checked_text(name, value));
  }
  if (all.empty()) return std::nullopt;
  return all;
}

Duration age_of(std::string_view name, std::string_view text) {
  return text == "0s" ? Duration::zero() : parse_age(name, text);
}

std::string make_cursor(const http::Request& request, std::span<const std::string> place) {
  std::string text = mark_of(request);
  for (const std::string& part : place) text += "\n" + part;
  return hex(text);
}

std::optional<std::vector<std::string>> read_cursor(const http::Request& request, std::size_t parts) {
  const std::optional<std::string> cursor = query_value(request, "cursor");
  if (!cursor) return std::nullopt;
  const std::optional<std::string> text = unhex(*cursor);
  if (!text || !utf8_length(*text) || text->find('\0') != std::string::npos) refuse_cursor();
  std::vector<std::string> place;
  std::string_view rest = *text;
  for (;;) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    place.emplace_back(rest.substr(0, end));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  if (place.size() != parts + 1 || place.front() != mark_of(request)) refuse_cursor();
  place.erase(place.begin());
  return place;
}

std::int64_t cursor_number(const std::string& part) {
  std::int64_t number = 0;
  const char* const end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, number);
  if (error != std::errc{} || stop != end || part.empty()) refuse_cursor();
  return number;
}

}  // namespace postrider::api
