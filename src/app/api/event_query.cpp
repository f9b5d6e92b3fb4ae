// SPDX-License-Identifier: Apache-2.0
#include "app/api/event_query.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/rfc3339.hpp"
#include "core/utf8.hpp"

namespace postrider::api {
namespace {

constexpr std::size_t default_limit = 100;
constexpr std::size_t most_limit = 1000;
constexpr std::size_t most_words = 10;
constexpr std::size_t longest_word = 80;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A short hash of what a query asks for, but for its limit: a page of one query is no beginning for another.
/// FNV-1a, because a cursor may come back to another process than the one that gave it.
std::uint32_t mark_of(const EntryQuery& query) {
  std::uint32_t hash = 2166136261U;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    hash = (hash ^ 0xFFU) * 16777619U;  // no text has this byte
  };
  const auto add_time = [&](const std::optional<TimePoint>& time) {
    add(time.has_value() ? std::to_string(time->time_since_epoch().count()) : "");
  };
  add(query.correlation_id.has_value() ? "=" + *query.correlation_id : "");
  add(query.application_id.has_value() ? "=" + *query.application_id : "");
  add_time(query.from);
  add_time(query.until);
  for (const std::string& word : query.words) add(word);
  return hash;
}

class QueryParser {
 public:
  std::variant<EntryQuery, Errors> parse(const http::Fields& parameters) {
    query_.limit = default_limit;
    std::vector<std::string_view> seen;
    for (const auto& [name, value] : parameters) {
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
        refuse(name, "repeated", "it is given more than once");
        continue;
      }
      seen.push_back(name);
      if (value.find('\0') != std::string::npos || !utf8_length(value).has_value()) {
        refuse(name, "text", "it is not valid UTF-8 without U+0000");
        continue;
      }
      take(name, value);
    }
    if (query_.from && query_.until && *query_.from > *query_.until) {
      refuse("to", "range", "it is before from");
    }
    if (!cursor_.empty()) {  // read last, because it belongs to an order
      query_.after = decode_cursor(cursor_, query_);
      if (!query_.after.has_value()) {
        refuse("cursor", "cursor", "it does not come from a page of this query");
      }
    }
    if (!errors_.empty()) return std::move(errors_);
    return std::move(query_);
  }

 private:
  void take(const std::string& name, const std::string& value) {
    if (value.empty() && (name == "correlationId" || name == "applicationId")) {
      refuse(name, "empty", "it is empty; leave it out to find the events of all");
    } else if (name == "correlationId") {
      query_.correlation_id = value;
    } else if (name == "applicationId") {
      query_.application_id = value;
    } else if (name == "from") {
      take_time(name, value, query_.from);
    } else if (name == "to") {
      take_time(name, value, query_.until);
    } else if (name == "text") {
      take_words(value);
    } else if (name == "order") {
      query_.newest_first = value == "desc";
      if (value != "asc" && value != "desc") refuse(name, "choice", "it is asc or desc");
    } else if (name == "limit") {
      const std::optional<std::int64_t> number = whole_number(value);
      if (!number.has_value() || *number < 1 || *number > static_cast<std::int64_t>(most_limit)) {
        refuse(name, "range", "it is a number from 1 to " + std::to_string(most_limit));
      } else {
        query_.limit = static_cast<std::size_t>(*number);
      }
    } else if (name == "cursor") {
      cursor_ = value;
      if (value.empty()) refuse(name, "cursor", "it is empty; leave it out for the first page");
    } else {
      refuse(name, "unknown",
             "known are correlationId, applicationId, from, to, text, order, limit and cursor");
    }
  }
  void take_time(const std::string& name, const std::string& value, std::optional<TimePoint>& time) {
    time = parse_time(value);
    if (!time.has_value()) {
      refuse(name, "time", "not a time by RFC 3339, as in 2026-06-01T10:15:30Z (a + is written %2B)");
    }
  }
  void take_words(const std::string& value) {
    query_.words = search_words(value);
    const auto length = [](const std::string& word) { return utf8_length(word).value_or(0); };
    if (query_.words.size() > most_words) {
      refuse("text", "range", "at most " + std::to_string(most_words) + " words can be searched for");
    } else if (std::any_of(query_.words.begin(), query_.words.end(),
                           [&](const std::string& word) { return length(word) > longest_word; })) {
      refuse("text", "range", "a word has at most " + std::to_string(longest_word) + " characters");
    } else if (std::none_of(query_.words.begin(), query_.words.end(),
                            [&](const std::string& word) { return length(word) >= least_indexed_word; })) {
      refuse("text", "range",
             "a word of at least " + std::to_string(least_indexed_word) + " characters is needed");
    }
  }
  void refuse(std::string name, std::string code, std::string detail) {
    errors_.push_back({std::move(name), std::move(code), std::move(detail)});
  }

  EntryQuery query_;
  std::string cursor_;
  Errors errors_;
};

}  // namespace

std::variant<EntryQuery, Errors> parse_query(const http::Fields& parameters) {
  return QueryParser().parse(parameters);
}

std::string encode_cursor(const EntryPosition& position, const EntryQuery& query) {
  return std::string(query.newest_first ? "d" : "a") +
         std::to_string(position.occurred_at.time_since_epoch().count()) + "." +
         std::to_string(static_cast<std::int64_t>(position.id)) + "." + std::to_string(mark_of(query));
}

std::optional<EntryPosition> decode_cursor(std::string_view text, const EntryQuery& query) {
  const std::size_t dot = text.find('.');
  const std::size_t last = text.rfind('.');
  if (dot == last || text.front() != (query.newest_first ? 'd' : 'a')) return std::nullopt;
  if (whole_number(text.substr(last + 1)) != std::optional<std::int64_t>(mark_of(query))) return std::nullopt;
  const std::optional<std::int64_t> micros = whole_number(text.substr(1, dot - 1));
  const std::optional<EntryId> id = parse_id(text.substr(dot + 1, last - dot - 1));
  if (!micros.has_value() || !id.has_value()) return std::nullopt;
  const EntryPosition position{TimePoint(Duration(*micros)), *id};
  // Not every database can compare with times that it cannot store.
  if (position.occurred_at < first_time || position.occurred_at >= end_of_time) return std::nullopt;
  return position;
}

std::optional<EntryId> parse_id(std::string_view text) {
  const std::optional<std::int64_t> number = whole_number(text);
  if (!number.has_value() || *number < 1) return std::nullopt;
  return EntryId{*number};
}

}  // namespace postrider::api
