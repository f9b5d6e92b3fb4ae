// SPDX-License-Identifier: Apache-2.0
#include "app/http/exchange.hpp"

#include <exception>
#include <string>
#include <variant>

#include "app/http/gzip.hpp"
#include "app/http/problems.hpp"
#include "app/http/session.hpp"
#include "core/what_of.hpp"

namespace postrider::http {

void Exchange::run(const Reply& reply) {
  if (!wanted()) return;  // it waited for a worker for too long
  try {
    if (packed_) {
      if (const std::optional<Problem> problem = unpack(request_.body)) {
        reply(to_response(*problem));
        return;
      }
    }
    route_.handler(std::move(request_), reply);
  } catch (const std::exception& error) {
    shared_.options.log(LogLevel::error, "postrider: " + std::string(to_string(route_.method)) + " " +
                                             route_.pattern + " failed: " + what_of(error));
    reply(to_response(
        {.status = 500, .code = "internal", .detail = "the server failed", .hint = "its log says why"}));
  }
}

std::optional<Problem> Exchange::unpack(std::string& body) {
  Budget::Hold hold(shared_.budget);
  auto unpacked = unpack_gzip(body, route_.body_limit, [&](std::size_t bytes) { return hold.grow(bytes); });
  if (auto* text = std::get_if<std::string>(&unpacked)) {
    body = std::move(*text);
    const MutexLock lock(mutex_);
    holds_.unpacked = std::move(hold);
    return std::nullopt;
  }
  switch (std::get<UnpackFault>(unpacked)) {
    case UnpackFault::too_large:
      return too_large(route_.body_limit);
    case UnpackFault::no_memory:
      return busy("the bodies of all requests together take too much memory");
    case UnpackFault::damaged:
      break;
  }
  return Problem{.status = 400,
                 .code = "invalid-gzip",
                 .detail = "the body is not gzip, or only a part of it",
                 .hint = "pack it anew, or send it as it is, without Content-Encoding"};
}

}  // namespace postrider::http
