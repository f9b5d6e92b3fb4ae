// SPDX-License-Identifier: Apache-2.0
#include "publishers/rabbitmq/connection.hpp"

#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>

#include "core/utf8.hpp"

namespace postrider {
namespace {

constexpr amqp_channel_t channel = 1;
constexpr std::string_view attribute_prefix = "cloudEvents:";
constexpr std::size_t longest_short = 255;  // of AMQP's short strings
constexpr int frame_bytes = 131'072;

amqp_bytes_t bytes_of(std::string_view text) {
  // The library only reads it.
  return {text.size(), const_cast<char*>(text.data())};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

std::string amqp_text(amqp_bytes_t bytes) {
  constexpr std::size_t longest = 300;
  const std::string_view text(static_cast<const char*>(bytes.bytes), bytes.len);
  return utf8_repaired(utf8_prefix(text, longest));
}

timeval time_of(Duration time) {
  time = std::max(time, Duration{0});
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return {static_cast<time_t>(seconds.count()), static_cast<suseconds_t>((time - seconds).count())};
}

Duration left(SteadyPoint deadline) {
  return std::chrono::ceil<Duration>(deadline - Clock::system().steady_now());
}

amqp_table_entry_t entry(std::string_view name, std::string_view value) {
  amqp_table_entry_t one{};
  one.key = bytes_of(name);
  one.value.kind = AMQP_FIELD_KIND_UTF8;
  one.value.value.bytes = bytes_of(value);
  return one;
}

/// What the broker says of a method that it did not like: "404 NOT_FOUND - no exchange 'x' …".
std::string said(const amqp_method_t& method) {
  if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_channel_close_t*>(method.decoded);
    return std::to_string(close->reply_code) + " " + amqp_text(close->reply_text);
  }
  if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_connection_close_t*>(method.decoded);
    return std::to_string(close->reply_code) + " " + amqp_text(close->reply_text);
  }
  return "the broker answered with method " + std::to_string(method.id);
}

}  // namespace

RabbitmqConnection::RabbitmqConnection(const RabbitmqSinkOptions& options, const RabbitmqAddress& address,
                                       Watchdog& watchdog)
    : options_(options), address_(address), watchdog_(watchdog), state_(::amqp_new_connection()) {
  if (state_ == nullptr) throw std::bad_alloc();
  try {
    open_socket();
    log_in();
    make_queue();
    ::amqp_confirm_select(state_, channel);
    require(::amqp_get_rpc_reply(state_), "have confirmations of");
    watchdog_.rest();
  } catch (...) {
    watchdog_.forget();
    ::amqp_destroy_connection(state_);
    throw;
  }
}

RabbitmqConnection::~RabbitmqConnection() {
  // Without a farewell, which could wait: the broker notices.
  watchdog_.forget();
  ::amqp_destroy_connection(state_);
}

void RabbitmqConnection::open_socket() {
  const timeval timeout = time_of(std::min(options_.connect_timeout, options_.timeout));
  amqp_socket_t* socket = nullptr;
  if (address_.tls) {
    // The process's OpenSSL is set up by itself; others may use it, too.
    static std::once_flag once;
    std::call_once(once, [] { ::amqp_set_initialize_ssl_library(0); });
    socket = ::amqp_ssl_socket_new(state_);
    if (socket == nullptr) throw std::bad_alloc();
    auto* const context = static_cast<SSL_CTX*>(::amqp_ssl_socket_get_context(socket));
    ::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    ::amqp_ssl_socket_set_verify_peer(socket, options_.verify_tls ? 1 : 0);
    ::amqp_ssl_socket_set_verify_hostname(socket, options_.verify_tls ? 1 : 0);
    if (!options_.ca_file.empty()) {
      if (::amqp_ssl_socket_set_cacert(socket, options_.ca_file.c_str()) != AMQP_STATUS_OK) {
        fail("use TLS with", "ca_file " + options_.ca_file + " has no certificates");
      }
    } else {
      ::SSL_CTX_set_default_verify_paths(context);
    }
    if (!options_.cert_file.empty() &&
        ::amqp_ssl_socket_set_key(socket, options_.cert_file.c_str(), options_.key_file.c_str()) !=
            AMQP_STATUS_OK) {
      fail("use TLS with", "cert_file " + options_.cert_file + " and key_file are no pair");
    }
  } else {
    socket = ::amqp_tcp_socket_new(state_);
    if (socket == nullptr) throw std::bad_alloc();
  }
  const int status = ::amqp_socket_open_noblock(socket, address_.host.c_str(), address_.port, &timeout);
  if (status != AMQP_STATUS_OK) {
    const bool certificate = status == AMQP_STATUS_SSL_PEER_VERIFY_FAILED ||
                             status == AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED ||
                             status == AMQP_STATUS_SSL_CONNECTION_FAILED;
    fail("connect to", ::amqp_error_string2(status),
         certificate ? "is ca_file the authority of its certificate, and the host its name?" : "");
  }
  const int descriptor = ::amqp_get_sockfd(state_);
  const int on = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);  // it may rest for hours
  watchdog_.watch(descriptor);
  watchdog_.set(Clock::system().steady_now() + options_.timeout);
}

void RabbitmqConnection::log_in() {
  const timeval timeout = time_of(options_.timeout);
  ::amqp_set_handshake_timeout(state_, &timeout);
  ::amqp_set_rpc_timeout(state_, &timeout);
  // With these the broker says why it takes nothing.
  std::array<amqp_table_entry_t, 1> capability{};
  capability[0].key = bytes_of("connection.blocked");
  capability[0].value.kind = AMQP_FIELD_KIND_BOOLEAN;
  capability[0].value.value.boolean = 1;
  std::array<amqp_table_entry_t, 3> properties{entry("product", "postrider"),
                                               entry("version", POSTRIDER_VERSION)};
  properties[2].key = bytes_of("capabilities");
  properties[2].value.kind = AMQP_FIELD_KIND_TABLE;
  properties[2].value.value.table = {static_cast<int>(capability.size()), capability.data()};
  const amqp_table_t table{static_cast<int>(properties.size()), properties.data()};
  // No heartbeat: between two sends nobody would be there to answer it.
  require(
      ::amqp_login_with_properties(state_, address_.virtual_host.c_str(), 1, frame_bytes, 0, &table,
                                   AMQP_SASL_METHOD_PLAIN, options_.user.c_str(), options_.password.c_str()),
      "log in to");
  ::amqp_channel_open(state_, channel);
  require(::amqp_get_rpc_reply(state_), "open a channel to");
}

void RabbitmqConnection::make_queue() {
  if (options_.queue.empty()) return;
  const amqp_bytes_t name = bytes_of(options_.queue);
  // One that is there may be of another kind, and is taken as it is.
  ::amqp_queue_declare(state_, channel, name, 1, 0, 0, 0, amqp_empty_table);
  const amqp_rpc_reply_t there = ::amqp_get_rpc_reply(state_);
  if (there.reply_type == AMQP_RESPONSE_NORMAL) return;
  const bool missing =
      there.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && there.reply.id == AMQP_CHANNEL_CLOSE_METHOD &&
      static_cast<const amqp_channel_close_t*>(there.reply.decoded)->reply_code == AMQP_NOT_FOUND;
  if (!missing) require(there, "look for the queue on");
  amqp_channel_close_ok_t yes{};
  ::amqp_send_method(state_, channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &yes);
  ::amqp_maybe_release_buffers(state_);
  ::amqp_channel_open(state_, channel);
  require(::amqp_get_rpc_reply(state_), "open a channel to");
  // Durable, of the kind that is the broker's default.
  ::amqp_queue_declare(state_, channel, name, 0, 1, 0, 0, amqp_empty_table);
  require(::amqp_get_rpc_reply(state_), "make the queue on");
}

std::string RabbitmqConnection::objection(std::string_view routing_key, const CloudEvent& event) const {
  if (routing_key.size() > longest_short) return "its routing key has more than 255 bytes";
  constexpr std::size_t for_each = 8;        // lengths and the kind
  constexpr std::size_t for_the_rest = 512;  // all other properties, and the frame
  std::size_t size = for_the_rest + event.content_type().size();
  for (const auto& one : event.attributes()) {
    size += attribute_prefix.size() + one.name.size() + one.value.size() + for_each;
  }
  for (const auto& one : event.headers()) size += one.name.size() + one.value.size() + for_each;
  if (size > static_cast<std::size_t>(std::max(::amqp_get_frame_max(state_), 0))) {
    return "its headers do not fit into one frame of " + std::to_string(::amqp_get_frame_max(state_)) +
           " bytes";
  }
  return {};
}

void RabbitmqConnection::publish(const std::string& routing_key, const CloudEvent& event,
                                 SteadyPoint deadline) {
  headers_.clear();
  names_.clear();
  names_.reserve(event.attributes().size());  // entries point into it
  for (const auto& one : event.attributes()) {
    names_.push_back(std::string(attribute_prefix).append(one.name));
    headers_.push_back(entry(names_.back(), one.value));
  }
  for (const auto& one : event.headers()) headers_.push_back(entry(one.name, one.value));
  constexpr std::uint8_t persistent = 2;
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG |
                      AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_HEADERS_FLAG;
  properties.content_type = bytes_of(event.content_type());
  properties.delivery_mode = persistent;
  properties.message_id = bytes_of(event.id());
  properties.headers = {static_cast<int>(headers_.size()), headers_.data()};
  watchdog_.set(deadline);
  const int status =
      ::amqp_basic_publish(state_, channel, bytes_of(options_.queue.empty() ? options_.exchange : ""),
                           bytes_of(routing_key), 1, 0, &properties, bytes_of(event.body()));
  watchdog_.rest();
  if (status == AMQP_STATUS_OK) {
    ++next_tag_;
    return;
  }
  // It may have said why before it hung up.
  while (next(Clock::system().steady_now())) {
  }
  fail("publish to",
       Clock::system().steady_now() >= deadline ? "it takes nothing" : ::amqp_error_string2(status));
}

std::optional<RabbitmqConnection::News> RabbitmqConnection::next(SteadyPoint deadline) {
  while (std::optional<amqp_frame_t> frame = read(deadline)) {
    if (frame->frame_type != AMQP_FRAME_METHOD) continue;
    if (frame->channel == 0) {
      on_connection(frame->payload.method);
    } else if (std::optional<News> news = on_channel(frame->payload.method, deadline)) {
      return news;
    }
  }
  return std::nullopt;
}

std::optional<amqp_frame_t> RabbitmqConnection::read(SteadyPoint deadline) {
  ::amqp_maybe_release_buffers(state_);
  amqp_frame_t frame{};
  const timeval time = time_of(left(deadline));
  const int status = ::amqp_simple_wait_frame_noblock(state_, &frame, &time);
  if (status == AMQP_STATUS_TIMEOUT) return std::nullopt;
  if (status != AMQP_STATUS_OK) fail("hear from", ::amqp_error_string2(status));
  return frame;
}

std::optional<RabbitmqConnection::News> RabbitmqConnection::on_channel(const amqp_method_t& method,
                                                                       SteadyPoint deadline) {
  switch (method.id) {
    case AMQP_BASIC_ACK_METHOD: {
      const auto* ack = static_cast<const amqp_basic_ack_t*>(method.decoded);
      return News{.kind = News::Kind::ack, .tag = ack->delivery_tag, .multiple = ack->multiple != 0};
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto* nack = static_cast<const amqp_basic_nack_t*>(method.decoded);
      return News{.kind = News::Kind::nack, .tag = nack->delivery_tag, .multiple = nack->multiple != 0};
    }
    case AMQP_BASIC_RETURN_METHOD:
      return read_returned(*static_cast<const amqp_basic_return_t*>(method.decoded), deadline);
    case AMQP_CHANNEL_CLOSE_METHOD: {
      const auto* close = static_cast<const amqp_channel_close_t*>(method.decoded);
      throw RabbitmqTrouble{.why = "RabbitMQ at " + address_.text() + " closes the channel: " + said(method),
                            .about_a_message = close->reply_code == AMQP_PRECONDITION_FAILED};
    }
    default:
      return std::nullopt;
  }
}

void RabbitmqConnection::on_connection(const amqp_method_t& method) {
  if (method.id == AMQP_CONNECTION_BLOCKED_METHOD) {
    blocked_ = amqp_text(static_cast<const amqp_connection_blocked_t*>(method.decoded)->reason);
    if (blocked_.empty()) blocked_ = "without a reason";
  } else if (method.id == AMQP_CONNECTION_UNBLOCKED_METHOD) {
    blocked_.clear();
  } else if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    fail("stay connected to", said(method));
  }
}

/// Its content follows in frames of its own.
RabbitmqConnection::News RabbitmqConnection::read_returned(const amqp_basic_return_t& method,
                                                           SteadyPoint deadline) {
  News news{.kind = News::Kind::returned, .text = amqp_text(method.reply_text)};
  std::optional<std::uint64_t> missing;
  while (!missing || *missing > 0) {
    const std::optional<amqp_frame_t> frame = read(deadline);
    if (!frame) fail("hear from", "a returned message is not complete");
    if (frame->channel != channel) {
      if (frame->frame_type == AMQP_FRAME_METHOD) on_connection(frame->payload.method);
    } else if (frame->frame_type == AMQP_FRAME_HEADER) {
      const auto* properties = static_cast<const amqp_basic_properties_t*>(frame->payload.properties.decoded);
      if ((properties->_flags & AMQP_BASIC_MESSAGE_ID_FLAG) != 0) news.id = amqp_text(properties->message_id);
      missing = frame->payload.properties.body_size;
    } else if (frame->frame_type == AMQP_FRAME_BODY && missing) {
      *missing -= std::min<std::uint64_t>(*missing, frame->payload.body_fragment.len);
    } else {
      fail("hear from", "a returned message is not complete");
    }
  }
  return news;
}

bool RabbitmqConnection::alive() {
  try {
    while (next(Clock::system().steady_now())) {
    }
    return true;
  } catch (const RabbitmqTrouble&) {
    return false;
  }
}

void RabbitmqConnection::require(amqp_rpc_reply_t reply, const char* what) {
  switch (reply.reply_type) {
    case AMQP_RESPONSE_NORMAL:
      return;
    case AMQP_RESPONSE_SERVER_EXCEPTION:
      fail(what, said(reply.reply));
    case AMQP_RESPONSE_LIBRARY_EXCEPTION:
      fail(what, ::amqp_error_string2(reply.library_error));
    case AMQP_RESPONSE_NONE:
      break;
  }
  fail(what, "no answer");
}

void RabbitmqConnection::fail(const std::string& what, const std::string& why, const char* hint) const {
  std::string text = "cannot " + what + " RabbitMQ at " + address_.text() + ": " + why;
  if (*hint != '\0') text.append(". Hint: ").append(hint);
  throw RabbitmqTrouble{.why = std::move(text)};
}

}  // namespace postrider
