// SPDX-License-Identifier: Apache-2.0
// Requests and responses, as handlers see them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace postrider::http {

enum class Method { get, post, put, patch, remove, other };

[[nodiscard]] std::string_view to_string(Method method) noexcept;

/// Names and values in the order in which they came; a name may come more than once.
using Fields = std::vector<std::pair<std::string, std::string>>;

/// A request that was read whole, within the limits of its route.
struct Request {
  Method method = Method::other;
  std::vector<std::string> path{};  ///< decoded segments
  Fields parameters{};              ///< what the route's {names} stand for
  Fields query{};                   ///< decoded
  Fields headers{};
  std::string body{};

  /// The first value, empty when there is none. Upper and lower case do not matter.
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept;
  /// Of the path. Empty when the route has no such name.
  [[nodiscard]] std::string_view parameter(std::string_view name) const noexcept;
};

class BodyStream;

struct Response {
  int status = 200;
  std::string body{};
  std::string content_type = "application/json";
  Fields headers{};
  /// Instead of `body`: one that is still being written.
  std::shared_ptr<BodyStream> stream{};
};

/// One thing that is wrong with a request's content. `field` is a JSON pointer or a parameter's name.
struct FieldError {
  std::string field;
  std::string code;
  std::string detail;
};

/// An error as RFC 9457 has it, with `code` for programs and `hint` for people.
struct Problem {
  int status = 500;
  std::string code;  ///< "invalid-json"
  std::string detail{};
  std::string hint{};
  std::vector<FieldError> errors{};
  Fields headers{};
};

[[nodiscard]] Response to_response(const Problem& problem);
/// The registered name of a status: "Not Found".
[[nodiscard]] std::string_view reason(int status) noexcept;
/// ASCII only, as header names are.
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

}  // namespace postrider::http
