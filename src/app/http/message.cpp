// SPDX-License-Identifier: Apache-2.0
#include "app/http/message.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "core/utf8.hpp"

namespace postrider::http {
namespace {

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::string_view to_string(Method method) noexcept {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::post:
      return "POST";
    case Method::put:
      return "PUT";
    case Method::patch:
      return "PATCH";
    case Method::remove:
      return "DELETE";
    case Method::other:
      break;
  }
  return "OTHER";
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view Request::header(std::string_view name) const noexcept {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return {};
}

std::string_view Request::parameter(std::string_view name) const noexcept {
  for (const auto& [key, value] : parameters) {
    if (key == name) return value;
  }
  return {};
}

std::string_view reason(int status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

Response to_response(const Problem& problem) {
  // A refusal may repeat what the client has sent, which need not be UTF-8; JSON must be.
  boost::json::object body;
  body["type"] = "urn:postrider:problem:" + problem.code;
  body["title"] = reason(problem.status);
  body["status"] = problem.status;
  body["code"] = problem.code;
  if (!problem.detail.empty()) body["detail"] = utf8_repaired(problem.detail);
  if (!problem.hint.empty()) body["hint"] = utf8_repaired(problem.hint);
  if (!problem.errors.empty()) {
    boost::json::array& errors = body["errors"].emplace_array();
    for (const FieldError& error : problem.errors) {
      errors.push_back({{"field", utf8_repaired(error.field)},
                        {"code", error.code},
                        {"detail", utf8_repaired(error.detail)}});
    }
  }
  return {.status = problem.status,
          .body = boost::json::serialize(body),
          .content_type = "application/problem+json",
          .headers = problem.headers};
}

}  // namespace postrider::http
