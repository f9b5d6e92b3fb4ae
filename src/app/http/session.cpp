// SPDX-License-Identifier: Apache-2.0
#include "app/http/session.hpp"

#include <array>
#include <boost/asio/post.hpp>
#include <ctime>
#include <limits>
#include <utility>

#include "core/what_of.hpp"

namespace postrider::http {
namespace {

namespace http = beast::http;

constexpr std::size_t read_buffer_bytes = 64U << 10U;
constexpr std::size_t first_read_bytes = 4096;
constexpr std::size_t read_bytes = 32U << 10U;
constexpr std::size_t target_bytes = 8000;
constexpr std::chrono::seconds linger_timeout{2};
constexpr std::size_t linger_bytes = 64U << 20U;

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

Method method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get:
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

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 40> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

/// "application/json; charset=utf-8" and the like.
bool is_json(std::string_view type) {
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  return equal_ignoring_case(type, "application/json");
}

/// What a body may take on its way, in chunks as small as they come.
std::size_t wire_bytes(std::size_t limit) {
  return 8 * limit;
}

Problem too_large(std::size_t limit) {
  if (limit == 0) return {.status = 413, .code = "no-body-expected", .detail = "this request takes no body"};
  return {.status = 413,
          .code = "body-too-large",
          .detail = "a body here has at most " + std::to_string(limit) + " bytes",
          .hint = "send fewer events at once"};
}

Problem busy(std::string detail) {
  return {.status = 503,
          .code = "busy",
          .detail = std::move(detail),
          .hint = "try again after a moment",
          .headers = {{"Retry-After", "1"}}};
}

}  // namespace

Session::Session(net::ip::tcp::socket socket, Shared& shared, Gone gone)
    : stream_(std::move(socket)), shared_(shared), gone_(std::move(gone)), buffer_(read_buffer_bytes) {}

Session::~Session() {
  gone_(this);
}

void Session::start() {
  net::post(stream_.get_executor(), [self = shared_from_this()] { self->wait_for_request(); });
}

void Session::drain() {
  net::post(stream_.get_executor(), [self = shared_from_this()] {
    if (self->resting_) self->close();
  });
}

void Session::cut() {
  net::post(stream_.get_executor(), [self = shared_from_this()] { self->close(); });
}

void Session::wait_for_request() {
  parser_.reset();
  request_ = {};
  route_ = nullptr;
  if (buffer_.size() > 0) {  // pipelined: it is here already
    read_header();
    return;
  }
  if (shared_.draining) {
    close();
    return;
  }
  resting_ = true;
  stream_.expires_after(shared_.options.idle_timeout);
  stream_.async_read_some(buffer_.prepare(first_read_bytes),
                          [self = shared_from_this()](beast::error_code error, std::size_t bytes) {
                            self->resting_ = false;
                            if (error) {
                              self->close();
                              return;
                            }
                            self->buffer_.commit(bytes);
                            self->read_header();
                          });
}

void Session::read_header() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(shared_.options.header_bytes));
  parser_->body_limit(std::numeric_limits<std::uint64_t>::max());  // until the route is known
  parser_->get().body().hold = Budget::Hold(shared_.budget);
  parsed_ = 0;
  stream_.expires_after(shared_.options.header_timeout);
  parse();
}

void Session::parse() {
  // Beast could read by itself, but its limit of the header is one of each line that arrives alone: a header
  // (or the trailer of a chunked body) of endless lines would fill the memory.
  const bool in_header = !parser_->is_header_done();
  const auto finish = [&](beast::error_code error) {
    if (in_header) {
      on_header(error);
    } else {
      on_body(error);
    }
  };
  const auto done = [&] { return in_header ? parser_->is_header_done() : parser_->is_done(); };
  while (buffer_.size() > 0 && !done()) {
    beast::error_code error;
    const std::size_t used = parser_->put(buffer_.data(), error);
    buffer_.consume(used);
    parsed_ += used;
    if (error == http::error::need_more || (!error && used == 0)) break;
    if (error) {
      finish(error);
      return;
    }
  }
  if (done()) {
    finish({});
  } else if (in_header && parsed_ + buffer_.size() > shared_.options.header_bytes) {
    finish(http::error::header_limit);
  } else if (!in_header && parsed_ > shared_.options.header_bytes + wire_bytes(route_->body_limit)) {
    finish(http::error::body_limit);
  } else if (buffer_.size() > read_buffer_bytes - read_bytes) {
    finish(http::error::bad_chunk);  // a line without end
  } else {
    stream_.async_read_some(buffer_.prepare(read_bytes),
                            [self = shared_from_this()](beast::error_code error, std::size_t bytes) {
                              if (error) {
                                self->close();
                                return;
                              }
                              self->buffer_.commit(bytes);
                              self->parse();
                            });
  }
}

void Session::on_header(beast::error_code error) {
  if (error) {
    refuse(error);
    return;
  }
  ++shared_.requests;
  if (std::optional<Problem> problem = check_header()) {
    refuse(*problem);
    return;
  }
  parser_->body_limit(route_->body_limit);
  stream_.expires_after(shared_.options.body_timeout);
  const std::string_view expect = view(parser_->get()[http::field::expect]);
  if (expect.empty() || buffer_.size() > 0) {
    parse();
  } else {
    send_continue();
  }
}

std::optional<Problem> Session::check_header() {
  const auto& head = parser_->get();
  if (head.version() != 10 && head.version() != 11) {
    return Problem{.status = 505, .code = "http-version", .detail = "HTTP/1.0 and HTTP/1.1 are spoken here"};
  }
  if (std::optional<Problem> problem = check_source()) return problem;
  if (head.target().size() > target_bytes) {
    return Problem{.status = 414, .code = "target-too-long", .detail = "the path and query are too long"};
  }
  std::optional<Target> target = parse_target(view(head.target()));
  if (!target.has_value()) {
    return Problem{
        .status = 400, .code = "invalid-target", .detail = "the request target is not a valid path"};
  }
  request_.method = method_of(head.method());
  request_.path = std::move(target->path);
  request_.query = std::move(target->query);
  if (std::optional<Problem> problem = find_route()) return problem;
  return check_content();
}

std::optional<Problem> Session::check_source() const {
  const auto& head = parser_->get();
  const std::vector<std::string>& hosts = shared_.options.allowed_hosts;
  if (head.version() == 11 && head.count(http::field::host) != 1) {
    return Problem{.status = 400, .code = "host-missing", .detail = "exactly one Host header is needed"};
  }
  if (hosts.empty()) return std::nullopt;
  const auto host = head.find(http::field::host);
  if (host != head.end() && !host_is_allowed(view(host->value()), hosts)) {
    return Problem{.status = 403, .code = "host-refused", .detail = "this server does not go by that name"};
  }
  const auto origin = head.find(http::field::origin);
  if (origin != head.end() && !origin_is_allowed(view(origin->value()), hosts)) {
    return Problem{
        .status = 403, .code = "origin-refused", .detail = "requests from foreign pages are refused"};
  }
  return std::nullopt;
}

std::optional<Problem> Session::find_route() {
  Router::Match match = shared_.router.find(request_.method, request_.path);
  if (auto* wrong = std::get_if<Router::WrongMethod>(&match)) {
    return Problem{.status = 405,
                   .code = "method-not-allowed",
                   .detail = "this resource takes " + wrong->allowed,
                   .headers = {{"Allow", wrong->allowed}}};
  }
  auto* found = std::get_if<Router::Found>(&match);
  if (found == nullptr) {
    return Problem{.status = 404, .code = "not-found", .detail = "there is nothing under this path"};
  }
  route_ = found->route;
  request_.parameters = std::move(found->parameters);
  return std::nullopt;
}

std::optional<Problem> Session::check_content() const {
  const auto& head = parser_->get();
  const boost::optional<std::uint64_t> length = parser_->content_length();
  if (length && *length > route_->body_limit) return too_large(route_->body_limit);
  if (route_->body_limit > 0) {
    if (!is_json(view(head[http::field::content_type]))) {
      return Problem{.status = 415,
                     .code = "content-type",
                     .detail = "the body must be JSON",
                     .hint = "send Content-Type: application/json"};
    }
    const std::string_view encoding = view(head[http::field::content_encoding]);
    if (!encoding.empty() && !equal_ignoring_case(encoding, "identity")) {
      return Problem{.status = 415,
                     .code = "content-encoding",
                     .detail = "compressed bodies are not taken",
                     .headers = {{"Accept-Encoding", "identity"}}};
    }
  }
  const std::string_view expect = view(head[http::field::expect]);
  if (!expect.empty() && !equal_ignoring_case(expect, "100-continue")) {
    return Problem{.status = 417, .code = "expectation", .detail = "only 100-continue can be expected"};
  }
  return std::nullopt;
}

void Session::send_continue() {
  response_.emplace(http::status::continue_, 11U);
  http::async_write(stream_, *response_,
                    [self = shared_from_this()](beast::error_code error, std::size_t /*bytes*/) {
                      self->response_.reset();
                      if (error) {
                        self->close();
                      } else {
                        self->parse();
                      }
                    });
}

void Session::on_body(beast::error_code error) {
  if (error) {
    refuse(error);
    return;
  }
  auto& message = parser_->get();
  for (const auto& field : message) {
    request_.headers.emplace_back(std::string(view(field.name_string())), std::string(view(field.value())));
  }
  request_.body = std::move(message.body().text);
  keep_alive_ = message.version() == 11 && message.keep_alive();
  stream_.expires_never();  // the handler takes its time
  dispatch();
}

void Session::dispatch() {
  const Reply reply([self = shared_from_this()](Response response) {
    net::post(self->stream_.get_executor(),
              [self, response = std::move(response)]() mutable { self->write(std::move(response)); });
  });
  auto job = [route = route_, log = shared_.options.log, reply,
              request = std::make_shared<Request>(std::move(request_))] {
    try {
      route->handler(std::move(*request), reply);
    } catch (const std::exception& error) {
      log(LogLevel::error, "postrider: " + std::string(to_string(route->method)) + " " + route->pattern +
                               " failed: " + what_of(error));
      reply(
          to_response({.status = 500, .code = "internal", .detail = "the server failed; its log says why"}));
    }
  };
  if (route_->lane == Lane::direct) {
    job();
    return;
  }
  WorkerPool& pool = route_->lane == Lane::write ? shared_.write : shared_.read;
  if (!pool.submit(std::move(job))) {
    reply(to_response(busy("too many requests are waiting")));
  }
}

void Session::refuse(const Problem& problem) {
  // Of a request that was not read whole nobody knows where the next one begins.
  keep_alive_ = false;
  write(to_response(problem));
}

void Session::refuse(beast::error_code error) {
  if (error == http::error::header_limit) {
    refuse({.status = 431,
            .code = "header-too-large",
            .detail = "a header has at most " + std::to_string(shared_.options.header_bytes) + " bytes"});
  } else if (error == http::error::body_limit) {
    refuse(too_large(route_ != nullptr ? route_->body_limit : 0));
  } else if (error == boost::system::errc::not_enough_memory) {
    refuse(busy("the bodies of all requests together take too much memory"));
  } else {
    refuse({.status = 400, .code = "invalid-http", .detail = "not HTTP: " + error.message()});
  }
}

void Session::write(Response response) {
  if (response_.has_value() || !stream_.socket().is_open()) return;  // cut meanwhile
  response_hold_ = Budget::Hold(shared_.budget);
  if (!response_hold_.grow(response.body.size())) {
    response = to_response(busy("answers that wait to be taken fill the memory"));
  }
  response_.emplace(static_cast<http::status>(response.status), 11U);
  response_->reason(beast::string_view(reason(response.status).data(), reason(response.status).size()));
  response_->set(http::field::server, "postrider");
  response_->set(http::field::date, date());
  response_->set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) response_->set(name, value);
  response_->body() = std::move(response.body);
  response_->keep_alive(keep_alive_ && !shared_.draining);
  response_->prepare_payload();
  stream_.expires_after(shared_.options.write_timeout);
  http::async_write(stream_, *response_,
                    [self = shared_from_this()](beast::error_code error, std::size_t /*bytes*/) {
                      self->on_written(error);
                    });
}

void Session::on_written(beast::error_code error) {
  const bool more = !error && response_->keep_alive();
  response_.reset();
  response_hold_ = {};
  if (error) {
    close();
  } else if (more) {
    wait_for_request();
  } else {
    close_gently();
  }
}

void Session::close_gently() {
  parser_.reset();
  beast::error_code ignored;
  stream_.socket().shutdown(net::ip::tcp::socket::shutdown_send, ignored);
  stream_.expires_after(linger_timeout);
  discard();
}

void Session::discard() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(read_buffer_bytes / 2),
                          [self = shared_from_this()](beast::error_code error, std::size_t bytes) {
                            self->discarded_ += bytes;
                            if (error || self->discarded_ > linger_bytes) {
                              self->close();
                            } else {
                              self->discard();
                            }
                          });
}

void Session::close() {
  beast::error_code ignored;
  stream_.socket().shutdown(net::ip::tcp::socket::shutdown_both, ignored);
  stream_.close();
}

}  // namespace postrider::http
