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

void append_quoted(std::string& out, std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  });
  if (!plain) {
    out += json::serialize(json::string(text));
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

}  // namespace

// Written for every finished event, so without a tree.
std::string encode_results(std::span<const HandlerResult> results) {
  if (results.empty()) return {};
  std::string text = "[";
  for (const HandlerResult& one : results) {
    text += text.size() == 1 ? R"({"handler":)" : R"(,{"handler":)";
    append_quoted(text, one.handler);
    text += R"(,"result":)" + std::to_string(static_cast<int>(one.verdict));
    if (one.failed > Attempt{0})
      text += R"(,"failed":)" + std::to_string(static_cast<std::int32_t>(one.failed));
    if (!one.error.empty()) {
      text += R"(,"error":)";
      append_quoted(text, stored_error(one.error));
    }
    text += '}';
  }
  return text += ']';
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
