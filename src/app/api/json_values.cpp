// SPDX-License-Identifier: Apache-2.0
#include "app/api/json_values.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>

#include "app/api/routes.hpp"
#include "core/json_text.hpp"
#include "core/nearest.hpp"
#include "core/rfc3339.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;
constexpr std::size_t max_depth = 32;

}  // namespace

std::string time_text(TimePoint time) {
  return format_time(time);
}

json::value time_or_null(const std::optional<TimePoint>& time) {
  return time ? json::value(format_time(*time)) : json::value(nullptr);
}

json::value text_or_null(std::string_view text) {
  return text.empty() ? json::value(nullptr) : json::value(json::string(text.data(), text.size()));
}

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

http::Response json_response(const json::object& body, int status) {
  return {.status = status, .body = json::serialize(body), .headers = {{"Cache-Control", "no-store"}}};
}

json::object json_body(const http::Request& request, std::span<const std::string_view> members) {
  if (request.body.empty()) return {};
  json::parse_options options;
  options.max_depth = max_depth;
  json::error_code error;
  const json::value value = json::parse(request.body, error, {}, options);
  if (error) {
    throw Refusal{
        {.status = 400,
         .code = "invalid-json",
         .detail = "the body is not JSON: " + json_fault(request.body, max_depth).value_or(error.message())}};
  }
  const json::object* const object = value.if_object();
  if (object == nullptr) refuse_invalid("the body must be a JSON object");
  for (const auto& member : *object) {
    if (std::find(members.begin(), members.end(), std::string_view(member.key())) != members.end()) continue;
    const std::string_view nearest = nearest_of(member.key(), members);
    refuse_invalid("there is no member '" + std::string(member.key()) + "' here",
                   nearest.empty() ? std::string() : "did you mean " + std::string(nearest) + "?");
  }
  return *object;
}

}  // namespace postrider::api
