// SPDX-License-Identifier: Apache-2.0
#include "app/api/json_values.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include "app/api/routes.hpp"
#include "core/json_text.hpp"
#include "core/nearest.hpp"
#include "core/rfc3339.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;
constexpr std::size_t max_depth = 32;

/// Digits alone, as JavaScript has it, unless these were very many.
void append(std::string& out, double number) {
  constexpr double smallest = 1e-6;
  constexpr double end = 1e21;
  const double size = std::abs(number);
  const bool plain = size == 0 || (size >= smallest && size < end);
  std::array<char, 32> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                     plain ? std::chars_format::fixed : std::chars_format::scientific);
  const std::string_view text(digits.data(), static_cast<std::size_t>(written.ptr - digits.data()));
  out += text;
  // Whoever tells whole numbers from others sees the same kind each time.
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

/// Nests no deeper than what was parsed, or made here.
void append(std::string& out, const json::value& value) {  // NOLINT(misc-no-recursion)
  if (const json::object* const object = value.if_object()) {
    out += '{';
    bool first = true;
    for (const auto& member : *object) {
      if (!std::exchange(first, false)) out += ',';
      out += json::serialize(member.key());
      out += ':';
      append(out, member.value());
    }
    out += '}';
  } else if (const json::array* const list = value.if_array()) {
    out += '[';
    bool first = true;
    for (const json::value& one : *list) {
      if (!std::exchange(first, false)) out += ',';
      append(out, one);
    }
    out += ']';
  } else if (const double* const number = value.if_double(); number != nullptr && std::isfinite(*number)) {
    append(out, *number);
  } else {
    out += json::serialize(value);
  }
}

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

std::string serialized(const json::value& value) {
  std::string out;
  append(out, value);
  return out;
}

http::Response json_response(const json::object& body, int status) {
  return {.status = status, .body = serialized(body), .headers = {{"Cache-Control", "no-store"}}};
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
  if (std::optional<std::string> loss = json_loss(request.body, max_depth)) refuse_invalid(std::move(*loss));
  const json::object* const object = value.if_object();
  if (object == nullptr) refuse_invalid("the body must be a JSON object");
  for (const auto& member : *object) {
    if (std::find(members.begin(), members.end(), std::string_view(member.key())) != members.end()) continue;
    const std::string_view nearest = nearest_of(member.key(), members);
    std::string all;
    for (const std::string_view one : members) all += (all.empty() ? "there are " : ", ") + std::string(one);
    refuse_invalid("there is no member '" + std::string(member.key()) + "' here",
                   nearest.empty() ? all : "did you mean " + std::string(nearest) + "?");
  }
  return *object;
}

}  // namespace postrider::api
