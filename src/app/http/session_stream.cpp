// SPDX-License-Identifier: Apache-2.0
// Responses that are written while they are sent. The connection ends with them: until then it is read from
// to see when the client goes, and that reading cannot be taken over by the next request.
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <utility>

#include "app/http/problems.hpp"
#include "app/http/session.hpp"

namespace postrider::http {
namespace {

namespace http = beast::http;

constexpr std::size_t watch_bytes = 4096;
/// What a client may send while it only has to listen.
constexpr std::size_t chatter_bytes = 64U << 10U;

}  // namespace

void Session::start_stream(const Response& response) {
  stream_body_ = response.stream;
  stream_head_.emplace(static_cast<http::status>(response.status), http10_ ? 10U : 11U);
  set_head(*stream_head_, response);
  stream_head_->keep_alive(false);
  if (!http10_) stream_head_->chunked(true);  // else the end of the connection is the end of the body
  stream_serializer_.emplace(*stream_head_);
  sending_ = true;
  stream_.expires_after(shared_.options.write_timeout);
  http::async_write_header(stream_, *stream_serializer_,
                           [self = shared_from_this()](beast::error_code error, std::size_t /*bytes*/) {
                             self->sending_ = false;
                             if (self->stream_body_ == nullptr) return;  // cut meanwhile
                             if (error || self->head_only_) {
                               self->end_stream(!error);
                               return;
                             }
                             self->stream_body_->attach([weak = self->weak_from_this()] {
                               const std::shared_ptr<Session> alive = weak.lock();
                               if (alive == nullptr) return;
                               net::post(alive->stream_.get_executor(), [alive] { alive->send_part(); });
                             });
                             self->watch();
                             self->send_part();
                           });
}

void Session::watch() {
  watching_ = true;
  buffer_.clear();
  stream_.expires_never();
  stream_.async_read_some(buffer_.prepare(watch_bytes),
                          [self = shared_from_this()](beast::error_code error, std::size_t bytes) {
                            self->watching_ = false;
                            self->discarded_ += bytes;
                            if (self->stream_body_ == nullptr) {
                              self->close_gently();  // we have ended it, and this reading
                            } else if (error || self->discarded_ > chatter_bytes) {
                              self->end_stream(false);
                            } else {
                              self->watch();
                            }
                          });
}

void Session::send_part() {
  if (sending_ || stream_body_ == nullptr) return;
  auto [bytes, state] = stream_body_->take();
  const bool over = state != BodyStream::State::open || shared_.draining;
  if (state == BodyStream::State::overrun) {
    end_stream(false);  // without its last chunk, so that nobody takes it for whole
    return;
  }
  if (bytes.empty() && !over) return;  // until it is woken
  part_.clear();
  if (http10_) {
    part_ = std::move(bytes);
  } else {
    if (!bytes.empty()) {
      std::array<char, 20> size{};
      const auto end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
      part_.append(size.data(), end).append("\r\n").append(bytes).append("\r\n");
    }
    if (over) part_ += "0\r\n\r\n";
  }
  sending_ = true;
  stream_.expires_after(shared_.options.write_timeout);
  net::async_write(stream_, net::buffer(part_),
                   [self = shared_from_this(), over](beast::error_code error, std::size_t /*bytes*/) {
                     self->sending_ = false;
                     if (error || over) {
                       self->end_stream(!error);
                     } else {
                       self->send_part();
                     }
                   });
}

void Session::end_stream(bool whole) {
  if (stream_body_ == nullptr) return;
  stream_body_->abandon();
  stream_body_.reset();
  response_hold_ = {};
  if (!whole) {
    close();
  } else if (watching_) {
    stream_.cancel();  // `watch` goes on
  } else {
    close_gently();
  }
}

}  // namespace postrider::http
