// SPDX-License-Identifier: Apache-2.0
// What a request's target asks for: paths, parameters, cursors, as the APIs read them, up to where a database
// would be asked. An input is targets, one in a line.
#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/api/event_query.hpp"
#include "app/api/members.hpp"
#include "app/api/routes.hpp"
#include "app/http/router.hpp"
#include "core/rfc3339.hpp"
#include "core/utf8.hpp"
#include "fuzz/require.hpp"
#include "postrider/event_id.hpp"

namespace postrider::api {
namespace {

using test::require;

constexpr std::size_t most_targets = 50;

/// A list of the management API, without the list.
http::Response list(const http::Request& request, const Caller& /*caller*/) {
  constexpr std::array<std::string_view, 8> known{"status",  "type",  "from",   "limit",
                                                  "delayed", "after", "cursor", "who"};
  only_parameters(request, known);
  const std::int64_t limit = query_number(request, "limit", 100, 1, 1000);
  require(limit >= 1 && limit <= 1000, "a number is within its bounds");
  (void)query_flag(request, "delayed");
  (void)query_time(request, "from");
  for (const std::string& text : query_texts(request, "status").value_or(std::vector<std::string>{})) {
    require(utf8_length(text).has_value() && text.find('\0') == std::string::npos,
            "a text can go into a statement");
  }
  const std::optional<std::string> type = query_text(request, "type");
  require(!type || utf8_length(*type).has_value(), "a text can go into a statement");
  if (const auto place = read_cursor(request, 2)) {
    require(place->size() == 2, "a cursor has as many parts as it should");
    (void)cursor_number(place->at(0));
    require(make_cursor(request, *place).size() == query_value(request, "cursor")->size(),
            "a cursor has one form");
  }
  // A page of this list ends here, and the next one is asked for.
  const std::vector<std::string> place{"-9223372036854775808", type.value_or("")};
  http::Request next = request;
  std::erase_if(next.query, [](const auto& field) { return field.first == "cursor"; });
  next.query.emplace_back("cursor", make_cursor(request, place));
  if (place[1].find('\n') == std::string::npos) {
    require(read_cursor(next, 2) == std::optional(place), "the next page begins where this one ends");
  }
  return {.body = "{}"};
}

http::Response one(const http::Request& request, const Caller& /*caller*/) {
  const std::string_view text = request.parameter("id");
  try {
    const EventId id(text);
    require(id.view() == text, "an id stays as it is");
  } catch (const Error& error) {
    throw Refusal{problem_of(error)};
  }
  if (const auto id = parse_id(text))
    require(static_cast<std::int64_t>(*id) >= 1, "an entry's id is above 0");
  return {.body = "{}"};
}

/// GET /v1/events
http::Response entries(const http::Request& request, const Caller& /*caller*/) {
  std::variant<EntryQuery, Errors> parsed = parse_query(request.query);
  if (auto* errors = std::get_if<Errors>(&parsed)) {
    require(!errors->empty(), "a query that is refused has something wrong");
    throw Refusal{
        {.status = 400, .code = "invalid-parameter", .detail = "no", .hint = "no", .errors = *errors}};
  }
  const EntryQuery& query = std::get<EntryQuery>(parsed);
  require(query.limit >= 1 && query.limit <= 1000, "a limit is within its bounds");
  for (const auto& time : {query.from, query.until}) {
    require(!time || (*time >= first_time && *time < end_of_time), "a time can be stored");
  }
  const EntryPosition last{query.until.value_or(first_time), EntryId{7}};
  const std::optional<EntryPosition> back = decode_cursor(encode_cursor(last, query), query);
  require(back == last, "the next page begins where this one ends");
  EntryQuery other = query;
  other.newest_first = !query.newest_first;
  require(!decode_cursor(encode_cursor(last, query), other), "a cursor is of no use in another order");
  if (query.after) {
    require(decode_cursor(encode_cursor(*query.after, query), query) == query.after,
            "a cursor that was taken is given again");
  }
  return {.body = "{}"};
}

const http::Router& router() {
  static Access access(Clock::system());
  static const http::Router made = [] {
    http::Router routes;
    mount(routes,
          {{.pattern = "/api/list", .without_database = list},
           {.pattern = "/api/list/{id}", .without_database = one},
           {.pattern = "/v1/events", .without_database = entries}},
          {.access = &access, .storage = [] { return nullptr; }, .log = [](LogLevel, std::string_view) {}});
    return routes;
  }();
  return made;
}

void ask(std::string_view line) {
  std::optional<http::Target> target = http::parse_target(line);
  if (!target) return;
  const http::Router::Match match = router().find(http::Method::get, target->path);
  const auto* const found = std::get_if<http::Router::Found>(&match);
  if (found == nullptr) return;
  std::size_t answers = 0;
  found->route->handler({.method = http::Method::get,
                         .path = target->path,
                         .parameters = found->parameters,
                         .query = target->query},
                        http::Reply([&](const http::Response& response) {
                          ++answers;
                          require(response.status == 200 || response.status == 400 || response.status == 404,
                                  "whatever is asked is the caller's fault");
                          boost::json::error_code error;
                          const auto body =
                              boost::json::parse(response.body, error);  // refuses what is no UTF-8
                          require(!error && body.is_object(), "every answer is JSON");
                        }));
  require(answers == 1, "a request has one answer");
}

}  // namespace
}  // namespace postrider::api

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (std::size_t i = 0; i < postrider::api::most_targets && !rest.empty(); ++i) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    postrider::api::ask(line);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return 0;
}
