// SPDX-License-Identifier: Apache-2.0
// Reading what a caller sent: members of a JSON object, parameters of a query. All throw Refusal with the
// name of what is wrong.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/http/message.hpp"
#include "postrider/clock.hpp"
#include "postrider/event_id.hpp"

namespace postrider::api {

/// Rows of a list, however many are asked for; and about how many bytes of them.
inline constexpr std::int64_t most_listed = 1000;
inline constexpr std::size_t page_bytes = 4U << 20U;

/// What `null` says of a member.
enum class Nulls : std::uint8_t {
  refused,      ///< a program that lost a value must not change all instead of one
  mean_absent,  ///< for what describes a new thing, and leaves out what it does not have
};

/// Members of one object.
class Members {
 public:
  /// Refuses members that are not among these, naming the nearest. `where` stands before names in messages:
  /// "filter.".
  Members(const boost::json::object& object, std::span<const std::string_view> known, std::string where = {},
          Nulls nulls = Nulls::refused);

  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name, std::int64_t least,
                                                   std::int64_t most) const;
  /// Seconds, which may have a fraction; from 0.
  [[nodiscard]] std::optional<Duration> seconds(std::string_view name, std::int64_t most) const;
  [[nodiscard]] std::optional<bool> flag(std::string_view name) const;
  [[nodiscard]] std::optional<TimePoint> time(std::string_view name) const;
  /// A list of texts, or one.
  [[nodiscard]] std::optional<std::vector<std::string>> texts(std::string_view name) const;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> numbers(std::string_view name) const;
  /// As `texts`. Throws Error(invalid_argument) for what no event can have as its id.
  [[nodiscard]] std::optional<std::vector<EventId>> event_ids(std::string_view name) const;
  /// The object `filter`, which must be there: what is changed has to be said. `example` is one of its
  /// members.
  [[nodiscard]] const boost::json::object& filter(std::string_view example) const;
  /// Null when it is not there.
  [[nodiscard]] const boost::json::object* object(std::string_view name) const;
  [[nodiscard]] const boost::json::value* value(std::string_view name) const;
  [[nodiscard]] std::string path(std::string_view name) const { return where_ + std::string(name); }

 private:
  const boost::json::object& object_;
  std::string where_;
};

/// A time by RFC 3339 in the query.
[[nodiscard]] std::optional<TimePoint> query_time(const http::Request& request, std::string_view name);
/// Checked to be valid UTF-8 without NUL, as every text that goes into a statement must be.
[[nodiscard]] std::optional<std::string> query_text(const http::Request& request, std::string_view name);
/// All values of a name, which may be repeated; not set when there is none.
[[nodiscard]] std::optional<std::vector<std::string>> query_texts(const http::Request& request,
                                                                  std::string_view name);

/// "90d", "5m", as everywhere in the program; and "0s", which means any age. Throws Error(invalid_argument).
[[nodiscard]] Duration age_of(std::string_view name, std::string_view text);

/// A place in the pages of one list. Opaque to clients: it says which query it belongs to, but for `limit`.
[[nodiscard]] std::string make_cursor(const http::Request& request, std::span<const std::string> place);
/// Of the parameter `cursor`, with so many parts. Nothing when there is none; one of another list is refused.
[[nodiscard]] std::optional<std::vector<std::string>> read_cursor(const http::Request& request,
                                                                  std::size_t parts);
/// A part that must be a number.
[[nodiscard]] std::int64_t cursor_number(const std::string& part);

}  // namespace postrider::api
