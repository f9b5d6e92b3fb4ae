// SPDX-License-Identifier: Apache-2.0
#include "sinks/rabbitmq/rabbitmq_client.hpp"

#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <sys/time.h>

#include <algorithm>
#include <stdexcept>

namespace postrider::test {
namespace {

constexpr amqp_channel_t channel = 1;

amqp_bytes_t bytes_of(const std::string& text) {
  return {text.size(), const_cast<char*>(text.data())};
}

std::string text_of(amqp_bytes_t bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

Received received_of(const amqp_envelope_t& envelope) {
  const std::string prefix = "cloudEvents:";
  const amqp_basic_properties_t& properties = envelope.message.properties;
  Received one{.content_type = text_of(properties.content_type), .body = text_of(envelope.message.body)};
  one.headers["message_id"] = text_of(properties.message_id);
  one.headers["delivery_mode"] = std::to_string(properties.delivery_mode);
  one.headers["routing_key"] = text_of(envelope.routing_key);
  if ((properties._flags & AMQP_BASIC_HEADERS_FLAG) == 0) return one;
  for (int i = 0; i < properties.headers.num_entries; ++i) {
    const amqp_table_entry_t& entry = properties.headers.entries[i];
    const std::string name = text_of(entry.key);
    if (entry.value.kind != AMQP_FIELD_KIND_UTF8) continue;
    const std::string value = text_of(entry.value.value.bytes);
    if (name.starts_with(prefix)) {
      one.attributes[name.substr(prefix.size())] = value;
    } else {
      one.headers[name] = value;
    }
  }
  if (one.attributes.contains("partitionkey")) one.key = one.attributes["partitionkey"];
  return one;
}

}  // namespace

RabbitmqClient::RabbitmqClient(int port) : state_(::amqp_new_connection()) {
  amqp_socket_t* const socket = ::amqp_tcp_socket_new(state_);
  if (::amqp_socket_open(socket, "127.0.0.1", port) != AMQP_STATUS_OK) {
    ::amqp_destroy_connection(state_);
    throw std::runtime_error("cannot connect to rabbitmq-server");
  }
  require(::amqp_login(state_, "/", 0, 131'072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"), "login");
  ::amqp_channel_open(state_, channel);
  require(::amqp_get_rpc_reply(state_), "channel.open");
}

RabbitmqClient::~RabbitmqClient() {
  ::amqp_destroy_connection(state_);
}

void RabbitmqClient::require(amqp_rpc_reply_t reply, const char* what) {
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error(std::string("rabbitmq: ") + what);
}

void RabbitmqClient::declare_queue(const std::string& name, const Arguments& arguments) {
  std::vector<amqp_table_entry_t> entries;
  for (const auto& [key, value] : arguments) {
    amqp_table_entry_t entry{};
    entry.key = bytes_of(key);
    if (std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      entry.value.kind = AMQP_FIELD_KIND_I64;
      entry.value.value.i64 = std::stoll(value);
    } else {
      entry.value.kind = AMQP_FIELD_KIND_UTF8;
      entry.value.value.bytes = bytes_of(value);
    }
    entries.push_back(entry);
  }
  ::amqp_queue_declare(state_, channel, bytes_of(name), 0, 1, 0, 0,
                       {static_cast<int>(entries.size()), entries.data()});
  require(::amqp_get_rpc_reply(state_), "queue.declare");
}

void RabbitmqClient::declare_exchange(const std::string& name, const std::string& type) {
  ::amqp_exchange_declare(state_, channel, bytes_of(name), bytes_of(type), 0, 1, 0, 0, amqp_empty_table);
  require(::amqp_get_rpc_reply(state_), "exchange.declare");
}

void RabbitmqClient::bind(const std::string& queue, const std::string& exchange,
                          const std::string& routing_key) {
  ::amqp_queue_bind(state_, channel, bytes_of(queue), bytes_of(exchange), bytes_of(routing_key),
                    amqp_empty_table);
  require(::amqp_get_rpc_reply(state_), "queue.bind");
}

void RabbitmqClient::remove_queue(const std::string& name) {
  ::amqp_queue_delete(state_, channel, bytes_of(name), 0, 0);
  require(::amqp_get_rpc_reply(state_), "queue.delete");
}

/// A message of our own behind all that are there says when we have them.
void RabbitmqClient::take_all(const std::string& queue, std::vector<Received>& into) {
  if (consuming_ != queue) {
    ::amqp_basic_consume(state_, channel, bytes_of(queue), amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
    require(::amqp_get_rpc_reply(state_), "basic.consume");
    consuming_ = queue;
  }
  const std::string mark = "mark-" + std::to_string(++marks_);
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_TYPE_FLAG;
  properties.type = bytes_of(mark);
  if (::amqp_basic_publish(state_, channel, amqp_empty_bytes, bytes_of(queue), 0, 0, &properties,
                           amqp_empty_bytes) != AMQP_STATUS_OK) {
    throw std::runtime_error("rabbitmq: basic.publish");
  }
  constexpr std::uint64_t some = 100;  // a queue gives a consumer only so many that are not acknowledged
  for (;;) {
    ::amqp_maybe_release_buffers(state_);
    amqp_envelope_t envelope{};
    const timeval timeout{30, 0};
    require(::amqp_consume_message(state_, &envelope, &timeout, 0), "basic.deliver");
    const std::string type = text_of(envelope.message.properties.type);
    if (type.empty()) into.push_back(received_of(envelope));
    const std::uint64_t tag = envelope.delivery_tag;
    ::amqp_destroy_envelope(&envelope);
    if (type == mark || tag % some == 0) ::amqp_basic_ack(state_, channel, tag, 1);
    if (type == mark) return;
  }
}

}  // namespace postrider::test
