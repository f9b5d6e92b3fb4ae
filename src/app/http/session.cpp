// SPDX-License-Identifier: Apache-2.0
#include "app/http/session.hpp"

#include <array>
#include <boost/asio/post.hpp>
#include <ctime>
#include <limits>
#include <utility>

#include "app/http/exchange.hpp"
#include "app/http/problems.hpp"

namespace postrider::http {
namespace {

namespace http = beast::http;

constexpr std::size_t read_buffer_bytes = 64U << 10U;
constexpr std::size_t first_read_bytes = 4096;
constexpr std::size_t read_bytes = 32U << 10U;
constexpr std::chrono::seconds linger_timeout{2};
constexpr std::size_t linger_bytes = 64U << 20U;

/// What a body may take on its way, in chunks as small as they come.
std::size_t wire_bytes(std::size_t limit) {
  return 8 * limit;
}

}  // namespace

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 40> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

Session::Session(net::ip::tcp::socket socket, std::shared_ptr<Transport::TlsContext> tls, Shared& shared,
                 Gone gone)
    : stream_(std::move(socket), std::move(tls)),
      timer_(stream_.get_executor()),
      shared_(shared),
      gone_(std::move(gone)),
      buffer_(read_buffer_bytes) {}

Session::~Session() {
  gone_(this);
}

void Session::start() {
  net::post(stream_.get_executor(), [self = shared_from_this()] {
    if (self->stream_.has_tls()) {
      self->listen_for_tls();
    } else {
      self->wait_for_request();
    }
  });
}

void Session::drain() {
  net::post(stream_.get_executor(), [self = shared_from_this()] {
    if (self->resting_) self->close();
    self->send_part();  // the last one of a stream
  });
}

void Session::cut() {
  net::post(stream_.get_executor(), [self = shared_from_this()] {
    self->end_stream(false);
    self->close();
    // Its handler may never let go of it.
    if (const std::shared_ptr<Exchange> exchange = self->exchange_.lock()) (void)exchange->take();
    self->timer_.cancel();
  });
}

void Session::listen_for_tls() {
  constexpr char handshake_record = 0x16;
  stream_.expires_after(shared_.options.header_timeout);
  stream_.async_read_undeciphered(
      buffer_.prepare(1), [self = shared_from_this()](beast::error_code error, std::size_t bytes) {
        self->buffer_.commit(bytes);
        if (error) {
          self->close();
        } else if (*static_cast<const char*>(self->buffer_.data().data()) == handshake_record) {
          self->shake_hands();
        } else {
          self->refuse_plain_text();
        }
      });
}

void Session::shake_hands() {
  stream_.async_handshake(buffer_.data(),
                          [self = shared_from_this()](beast::error_code error, std::size_t /*used*/) {
                            self->buffer_.clear();
                            if (error) {
                              self->close();
                            } else {
                              self->wait_for_request();
                            }
                          });
}

void Session::refuse_plain_text() {
  stream_.do_without_tls();
  write({.status = 400,
         .body = "this port speaks HTTPS: ask again with https://\n",
         .content_type = "text/plain"});
}

void Session::wait_for_request() {
  parser_.reset();
  request_ = {};
  route_ = nullptr;
  head_only_ = false;
  packed_ = false;
  http10_ = false;
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
  } else if (!in_header && parsed_ > shared_.options.header_bytes + wire_bytes(readable_bytes())) {
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
  parser_->body_limit(readable_bytes());
  stream_.expires_after(shared_.options.body_timeout);
  const std::string_view expect = view(parser_->get()[http::field::expect]);
  if (expect.empty() || buffer_.size() > 0) {
    parse();
  } else {
    send_continue();
  }
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
  request_.body = std::move(message.body().text);
  if (const std::optional<Problem> problem = check_no_body()) {
    refuse(*problem);
    return;
  }
  keep_alive_ = message.version() == 11 && message.keep_alive();
  stream_.expires_never();  // from here on `timer_` counts
  dispatch();
}

void Session::dispatch() {
  const Route& route = *route_;
  auto exchange = std::make_shared<Exchange>(
      shared_from_this(), shared_, route, std::move(request_),
      Exchange::Holds{.body = std::move(parser_->get().body().hold), .unpacked = {}}, packed_);
  exchange_ = exchange;
  const Reply reply(
      [exchange](Response response) {
        std::shared_ptr<Session> session = exchange->take();
        if (session == nullptr) {  // too late
          if (response.stream != nullptr) response.stream->abandon();
          return;
        }
        const auto strand = session->stream_.get_executor();
        net::post(strand, [session = std::move(session), holds = exchange->take_holds(),
                           response = std::move(response)]() mutable {
          session->holds_ = std::move(holds);
          session->write(std::move(response));
        });
      },
      [exchange] { return exchange->wanted(); });
  timer_.expires_after(route.timeout.value_or(shared_.options.request_timeout));
  timer_.async_wait([exchange](beast::error_code cancelled) {
    if (cancelled) return;
    if (const std::shared_ptr<Session> session = exchange->take()) session->answer_late(exchange->route());
  });
  auto job = [exchange, reply] { exchange->run(reply); };
  if (route.lane == Lane::direct) {
    job();
    return;
  }
  WorkerPool& pool = route.lane == Lane::write ? shared_.write : shared_.read;
  if (!pool.submit(std::move(job))) {
    reply(to_response(busy("too many requests are waiting")));
  }
}

void Session::answer_late(const Route& route) {
  ++shared_.late;
  write(to_response(route.late.value_or(timed_out())));
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
            .detail = "a header has at most " + std::to_string(shared_.options.header_bytes) + " bytes",
            .hint = "send fewer or shorter headers"});
  } else if (error == http::error::body_limit) {
    refuse(too_large(route_ != nullptr ? route_->body_limit : 0));
  } else if (error == boost::system::errc::not_enough_memory) {
    refuse(busy("the bodies of all requests together take too much memory"));
  } else {
    refuse({.status = 400,
            .code = "invalid-http",
            .detail = "not HTTP: " + error.message(),
            .hint = "send HTTP/1.1 as RFC 9112 has it"});
  }
}

void Session::write(Response response) {
  timer_.cancel();
  if (response_.has_value() || !stream_.socket().is_open()) {  // cut meanwhile
    if (response.stream != nullptr) response.stream->abandon();
    return;
  }
  response_hold_ = Budget::Hold(shared_.budget);
  const std::size_t memory = response.stream != nullptr ? response.stream->capacity() : response.body.size();
  if (!response_hold_.grow(memory)) {
    if (response.stream != nullptr) response.stream->abandon();
    response = to_response(busy("answers that wait to be taken fill the memory"));
  }
  if (response.stream != nullptr) {
    start_stream(response);
    return;
  }
  response_.emplace(static_cast<http::status>(response.status), 11U);
  set_head(*response_, response);
  response_->keep_alive(keep_alive_ && !shared_.draining);
  if (response.status == 204 || response.status == 304) {
    // Neither a body nor a length.
  } else if (head_only_) {
    response_->content_length(response.body.size());
  } else {
    response_->body() = std::move(response.body);
    response_->prepare_payload();
  }
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
  holds_ = {};
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
  stream_.expires_after(linger_timeout);
  if (stream_.has_tls()) {  // its goodbye tells the client that nothing was cut off
    stream_.async_shutdown([self = shared_from_this()](beast::error_code /*error*/) { self->close(); });
    return;
  }
  beast::error_code ignored;
  stream_.socket().shutdown(net::ip::tcp::socket::shutdown_send, ignored);
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
