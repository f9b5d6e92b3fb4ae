// SPDX-License-Identifier: Apache-2.0
#include "app/api/routes.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/nearest.hpp"
#include "core/what_of.hpp"
#include "core/without_prefix.hpp"

namespace postrider::api {
namespace {

using http::Problem;
using http::Response;

/// What an error says, without "postrider: ", which is for logs, and with its hint where hints stand.
Problem problem_from(int status, std::string code, const Error& error) {
  constexpr std::string_view hint_mark = ". Hint: ";
  const std::string_view message = without_prefix(error.what());
  const std::size_t at = message.find(hint_mark);
  if (at == std::string_view::npos)
    return {.status = status, .code = std::move(code), .detail = std::string(message)};
  return {.status = status,
          .code = std::move(code),
          .detail = std::string(message.substr(0, at)),
          .hint = std::string(message.substr(at + hint_mark.size()))};
}

/// Every problem has a hint, if only where to read on.
Problem with_hint(Problem problem) {
  if (problem.hint.empty()) problem.hint = "GET /openapi.yaml describes this API";
  return problem;
}

Response refusal_of(Problem problem) {
  return to_response(with_hint(std::move(problem)));
}

Response answer_without_database(const ApiRoute& route, const http::Request& request, const Caller& caller) {
  try {
    return route.without_database(request, caller);
  } catch (const Refusal& refusal) {
    return refusal_of(refusal.problem);
  }
}

Response answer(const ApiRoute& route, const ApiHost& host, const http::Request& request) {
  const Access::Verdict verdict = host.access->decide(request, route.role);
  if (!verdict.caller) return refusal_of(verdict.problem);
  Storage* const storage = host.storage();
  if (storage == nullptr && !route.without_database) {
    const bool started = host.started && host.started();
    return to_response(
        Problem{.status = 503,
                .code = started ? "unavailable" : "starting",
                .detail = started ? "the database does not answer" : "the database is not there yet",
                .hint = started ? "it is asked each second; GET /readyz?verbose says what is wrong"
                                : "GET /readyz?verbose says what is waited for",
                .headers = {{"Retry-After", "2"}}});
  }
  if (route.without_database) return answer_without_database(route, request, *verdict.caller);
  Call call{.request = request, .storage = *storage, .caller = *verdict.caller};
  const auto audit = [&](const std::string& what) {
    if (!what.empty()) host.audit({Clock::system().now(), verdict.caller->name, what, call.piece});
  };
  try {
    Response response = route.handler(call);
    audit(call.done);
    return response;
  } catch (const Refusal& refusal) {
    audit(call.done);
    return refusal_of(refusal.problem);
  } catch (const Error& error) {
    const Problem problem = problem_of(error);
    if (problem.status >= 500) {
      if (route.method != http::Method::get && host.write_failed) host.write_failed(error);
      host.log(LogLevel::warning, "postrider: a request failed: " + what_of(error));
      audit(!call.done.empty() || call.tried.empty() ? call.done : "tried, and failed: " + call.tried);
    }
    return refusal_of(problem);
  }
}

}  // namespace

Problem not_ready(std::string why) {
  return {.status = 503,
          .code = "not-ready",
          .detail = std::move(why),
          .hint = "ask again in a moment; GET /readyz?verbose says more",
          .headers = {{"Retry-After", "5"}}};
}

void mount(http::Router& router, const std::vector<ApiRoute>& routes, const ApiHost& host) {
  for (const ApiRoute& route : routes) {
    const bool reads = route.method == http::Method::get;
    router.add({.method = route.method,
                .pattern = route.pattern,
                .lane = reads ? http::Lane::read : http::Lane::write,
                .body_limit = route.body_limit,
                .admit = [role = route.role,
                          access = host.access](const http::Request& request) -> std::optional<Problem> {
                  std::optional<Problem> problem = access->refusal(request, role);
                  if (!problem) return std::nullopt;
                  return with_hint(std::move(*problem));
                },
                .handler = [route, host](const http::Request& request,
                                         const http::Reply& reply) { reply(answer(route, host, request)); }});
  }
}

bool may_pass(const Error& error) noexcept {
  return error.retryable() || error.connection_lost() || error.in_doubt() ||
         error.code() == ErrorCode::unavailable || error.code() == ErrorCode::timeout ||
         error.code() == ErrorCode::contention || error.code() == ErrorCode::schema ||
         error.code() == ErrorCode::storage_full || error.code() == ErrorCode::closed;
}

Problem problem_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::invalid_argument:
      return problem_from(400, "invalid", error);
    case ErrorCode::conflict:
      return problem_from(409, "conflict", error);
    case ErrorCode::unsupported:
      return problem_from(501, "unsupported", error);
    default:
      break;
  }
  if (!may_pass(error)) {
    return {.status = 500, .code = "internal", .detail = "the server failed", .hint = "its log says why"};
  }
  return {.status = 503,
          .code = "storage-unavailable",
          .detail = "the database cannot take or answer this now",
          .hint = error.in_doubt() ? "look whether it has happened before you ask again"
                                   : "try again after a moment",
          .headers = {{"Retry-After", error.code() == ErrorCode::contention ? "1" : "5"}}};
}

std::optional<std::string> query_value(const http::Request& request, std::string_view name) {
  std::optional<std::string> found;
  for (const auto& [key, value] : request.query) {
    if (key != name) continue;
    if (found) refuse_invalid(std::string(name) + " is given more than once", "give it once");
    found = value;
  }
  return found;
}

std::int64_t query_number(const http::Request& request, std::string_view name, std::int64_t standard,
                          std::int64_t least, std::int64_t most) {
  const std::optional<std::string> text = query_value(request, name);
  if (!text) return standard;
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc{} || stop != end || number < least || number > most) {
    refuse_invalid(std::string(name) + " must be a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most));
  }
  return number;
}

bool query_flag(const http::Request& request, std::string_view name) {
  const std::optional<std::string> text = query_value(request, name);
  if (!text || *text == "false") return false;
  if (*text == "true" || text->empty()) return true;
  refuse_invalid(std::string(name) + " must be true or false");
}

void only_parameters(const http::Request& request, std::span<const std::string_view> known) {
  for (const auto& [name, value] : request.query) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view nearest = nearest_of(name, known);
    refuse_invalid("there is no parameter '" + name + "' here",
                   nearest.empty() ? std::string() : "did you mean " + std::string(nearest) + "?");
  }
}

void refuse_missing(std::string detail, std::string hint) {
  throw Refusal{{.status = 404, .code = "not-found", .detail = std::move(detail), .hint = std::move(hint)}};
}

void refuse_invalid(std::string detail, std::string hint) {
  throw Refusal{
      {.status = 400, .code = "invalid-parameter", .detail = std::move(detail), .hint = std::move(hint)}};
}

}  // namespace postrider::api
