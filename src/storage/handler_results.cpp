// SPDX-License-Identifier: Apache-2.0
#include "storage/handler_results.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <limits>
#include <utility>

#include "storage/row_decoder.hpp"

namespace postrider {
namespace {

namespace json = boost::json;

std::int64_t number(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

std::string text(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

std::string encode_results(std::span<const HandlerResult> results) {
  if (results.empty()) return {};
  json::array array;
  array.reserve(results.size());
  for (const HandlerResult& one : results) {
    json::object object{{"handler", one.handler}, {"result", static_cast<int>(one.verdict)}};
    if (one.failed > Attempt{0}) object["failed"] = static_cast<std::int32_t>(one.failed);
    if (!one.error.empty()) object["error"] = stored_error(one.error);
    array.push_back(std::move(object));
  }
  return json::serialize(array);
}

std::vector<HandlerResult> decode_results(std::string_view text_of_array) {
  std::vector<HandlerResult> results;
  boost::system::error_code failed;
  const json::value parsed = json::parse(text_of_array, failed);
  if (failed || !parsed.is_array()) return results;
  for (const json::value& value : parsed.get_array()) {
    if (!value.is_object()) continue;
    const json::object& object = value.get_object();
    const std::int64_t verdict = number(object, "result");
    if (verdict < 0 || verdict > 2) continue;
    results.push_back({.handler = text(object, "handler"),
                       .verdict = static_cast<HandlerVerdict>(verdict),
                       .failed = Attempt{static_cast<std::int32_t>(std::clamp<std::int64_t>(
                           number(object, "failed"), 0, std::numeric_limits<std::int32_t>::max()))},
                       .error = text(object, "error")});
  }
  return results;
}

}  // namespace postrider
