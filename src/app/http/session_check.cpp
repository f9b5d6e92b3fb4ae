// SPDX-License-Identifier: Apache-2.0
// What is wrong with a request of which only the header is known: it is refused before its body is read.
#include <utility>

#include "app/http/problems.hpp"
#include "app/http/session.hpp"

namespace postrider::http {
namespace {

namespace http = beast::http;

constexpr std::size_t target_bytes = 8000;

Method method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get:
    case http::verb::head:  // a GET whose answer stays at home
      return Method::get;
    case http::verb::post:
      return Method::post;
    case http::verb::put:
      return Method::put;
    case http::verb::patch:
      return Method::patch;
    case http::verb::delete_:
      return Method::remove;
    default:
      return Method::other;
  }
}

/// "application/json; charset=utf-8" and the like.
bool is_json(std::string_view type) {
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  return equal_ignoring_case(type, "application/json");
}

}  // namespace

std::optional<Problem> Session::check_header() {
  const auto& head = parser_->get();
  head_only_ = head.method() == http::verb::head;
  http10_ = head.version() == 10;
  if (head.version() != 10 && head.version() != 11) {
    return Problem{.status = 505,
                   .code = "http-version",
                   .detail = "HTTP/1.0 and HTTP/1.1 are spoken here",
                   .hint = "ask again with HTTP/1.1"};
  }
  if (std::optional<Problem> problem = check_framing()) return problem;
  if (head.target().size() > target_bytes) {
    return Problem{.status = 414,
                   .code = "target-too-long",
                   .detail = "path and query have more than " + std::to_string(target_bytes) + " bytes",
                   .hint = "ask for less at once"};
  }
  std::optional<Target> target = parse_target(view(head.target()));
  if (!target.has_value()) {
    return Problem{.status = 400,
                   .code = "invalid-target",
                   .detail = "the request target is not a valid path",
                   .hint = "begin it with /, and write other characters than those of a URL as %XX"};
  }
  if (std::optional<Problem> problem = check_source(target->authority)) return problem;
  request_.method = method_of(head.method());
  request_.path = std::move(target->path);
  request_.query = std::move(target->query);
  if (std::optional<Problem> problem = find_route()) return problem;
  for (const auto& field : head) {
    request_.headers.emplace_back(std::string(view(field.name_string())), std::string(view(field.value())));
  }
  if (route_->body_limit > 0 && route_->admit) {
    if (std::optional<Problem> problem = route_->admit(request_)) return problem;
  }
  return check_content();
}

/// Where a body ends must be beyond doubt, or one could be smuggled past whoever stands before us.
std::optional<Problem> Session::check_framing() const {
  const auto& head = parser_->get();
  const std::size_t encodings = head.count(http::field::transfer_encoding);
  const bool chunked =
      encodings == 1 && equal_ignoring_case(view(head[http::field::transfer_encoding]), "chunked");
  const bool lengths = head.count(http::field::content_length) > 0;
  if (encodings == 0 || (chunked && !lengths && head.version() == 11)) return std::nullopt;
  return Problem{
      .status = 400,
      .code = "invalid-http",
      .detail = "not HTTP: it is not clear where the body ends",
      .hint = "send Content-Length or Transfer-Encoding: chunked, not both, and no other encoding"};
}

std::optional<Problem> Session::check_source(const std::optional<std::string>& authority) const {
  const auto& head = parser_->get();
  const std::vector<std::string>& hosts = shared_.options.allowed_hosts;
  if (head.version() == 11 && head.count(http::field::host) != 1) {
    return Problem{.status = 400,
                   .code = "host-missing",
                   .detail = "exactly one Host header is needed",
                   .hint = "send Host: with the name and port of this server"};
  }
  if (hosts.empty()) return std::nullopt;
  const auto host = head.find(http::field::host);
  // A target that names a server counts instead of Host.
  const bool allowed = authority.has_value()
                           ? host_is_allowed(*authority, hosts)
                           : host == head.end() || host_is_allowed(view(host->value()), hosts);
  if (!allowed) {
    return Problem{.status = 403,
                   .code = "host-refused",
                   .detail = "this server does not go by that name",
                   .hint = "ask for " + hosts.front() + ", or let it go by that name (server.allowed-hosts)"};
  }
  const auto origin = head.find(http::field::origin);
  const std::string_view asked = authority.has_value() ? std::string_view(*authority)
                                 : host != head.end()  ? view(host->value())
                                                       : std::string_view();
  if (origin != head.end() &&
      !origin_is_allowed(view(origin->value()), asked, shared_.options.public_hosts)) {
    return Problem{.status = 403,
                   .code = "origin-refused",
                   .detail = "requests from foreign pages are refused",
                   .hint = "ask from a page of this server, or without a browser"};
  }
  return std::nullopt;
}

std::optional<Problem> Session::find_route() {
  Router::Match match = shared_.router.find(request_.method, request_.path);
  if (auto* wrong = std::get_if<Router::WrongMethod>(&match)) {
    return Problem{.status = 405,
                   .code = "method-not-allowed",
                   .detail = "this resource takes " + wrong->allowed,
                   .hint = "use one of these methods",
                   .headers = {{"Allow", wrong->allowed}}};
  }
  auto* found = std::get_if<Router::Found>(&match);
  if (found == nullptr) {
    return Problem{.status = 404,
                   .code = "not-found",
                   .detail = "there is nothing under this path",
                   .hint = "paths are exact: mind upper and lower case, and a / at the end"};
  }
  route_ = found->route;
  request_.parameters = std::move(found->parameters);
  return std::nullopt;
}

std::optional<Problem> Session::check_content() {
  const auto& head = parser_->get();
  const boost::optional<std::uint64_t> length = parser_->content_length();
  if (length && *length > readable_bytes()) return too_large(route_->body_limit);
  if (route_->body_limit > 0) {
    if (head.count(http::field::content_type) > 1 || !is_json(view(head[http::field::content_type]))) {
      return Problem{.status = 415,
                     .code = "content-type",
                     .detail = "the body must be JSON",
                     .hint = "send Content-Type: application/json"};
    }
    const std::string_view encoding = view(head[http::field::content_encoding]);
    packed_ = equal_ignoring_case(encoding, "gzip") || equal_ignoring_case(encoding, "x-gzip");
    const bool plain = encoding.empty() || equal_ignoring_case(encoding, "identity");
    if (head.count(http::field::content_encoding) > 1 || (!packed_ && !plain)) {
      return Problem{.status = 415,
                     .code = "content-encoding",
                     .detail = "bodies are taken as they are, or packed once with gzip",
                     .hint = "send Content-Encoding: gzip, or none",
                     .headers = {{"Accept-Encoding", "gzip, identity"}}};
    }
  }
  const std::string_view expect = view(head[http::field::expect]);
  if (!expect.empty() && !equal_ignoring_case(expect, "100-continue")) {
    return Problem{.status = 417,
                   .code = "expectation",
                   .detail = "only 100-continue can be expected",
                   .hint = "leave the header Expect out"};
  }
  return std::nullopt;
}

std::size_t Session::readable_bytes() const {
  constexpr std::size_t empty_object_bytes = 64;  // spaces and line breaks, too
  if (route_->body_limit > 0 || route_->method == Method::get) return route_->body_limit;
  return empty_object_bytes;
}

std::optional<Problem> Session::check_no_body() {
  if (route_->body_limit > 0 || request_.body.empty()) return std::nullopt;
  std::string said;
  for (const char c : request_.body) {
    if (std::string_view(" \t\r\n").find(c) == std::string_view::npos) said += c;
  }
  if (said != "{}") return no_body_expected(400);
  request_.body.clear();
  return std::nullopt;
}

}  // namespace postrider::http
