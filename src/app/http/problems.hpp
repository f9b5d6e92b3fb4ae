// SPDX-License-Identifier: Apache-2.0
// What a server says about requests that more than one place refuses.
#pragma once

#include <string>
#include <utility>

#include "app/http/message.hpp"

namespace postrider::http {

/// A body where none belongs.
[[nodiscard]] inline Problem no_body_expected(int status) {
  return {.status = status,
          .code = "no-body-expected",
          .detail = "this request takes no body",
          .hint = "send it without one; {} is taken for none where something is changed"};
}

/// A body beyond its route's limit.
[[nodiscard]] inline Problem too_large(std::size_t limit) {
  if (limit == 0) return no_body_expected(413);
  return {.status = 413,
          .code = "body-too-large",
          .detail = "a body here has at most " + std::to_string(limit) + " bytes, unpacked",
          .hint = "send a batch in parts; a single event needs shorter texts"};
}

/// Too much is going on.
[[nodiscard]] inline Problem busy(std::string detail) {
  return {.status = 503,
          .code = "busy",
          .detail = std::move(detail),
          .hint = "try again after a moment",
          .headers = {{"Retry-After", "1"}}};
}

/// A handler has not answered in time, and may still be at work.
[[nodiscard]] inline Problem timed_out() {
  return {.status = 503,
          .code = "timeout",
          .detail = "the request was not answered in time; what it asks for may have happened or may still",
          .hint = "look, or send it again if it does no harm twice",
          .headers = {{"Retry-After", "5"}}};
}

}  // namespace postrider::http
