// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <amqp.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/cloud_events.hpp"
#include "postrider/rabbitmq_sink.hpp"
#include "publishers/rabbitmq/watchdog.hpp"

namespace postrider {

/// Why a connection is of no use any more. Thrown by RabbitmqConnection.
struct RabbitmqTrouble {
  std::string why;
  bool about_a_message = false;  ///< one of those on their way was to blame
};

/// Where the options' url leads to.
struct RabbitmqAddress {
  std::string host;
  int port = 0;
  std::string virtual_host;
  bool tls = false;
  [[nodiscard]] std::string text() const { return host + ":" + std::to_string(port); }
};

/// One connection with one channel in confirm mode. After it has thrown it can only be destroyed. Not
/// synchronised.
class RabbitmqConnection {
 public:
  /// Connects, logs in, makes the queue. All outlive it.
  RabbitmqConnection(const RabbitmqSinkOptions& options, const RabbitmqAddress& address, Watchdog& watchdog);
  ~RabbitmqConnection();
  RabbitmqConnection(const RabbitmqConnection&) = delete;
  RabbitmqConnection& operator=(const RabbitmqConnection&) = delete;

  struct News {
    enum class Kind : std::uint8_t { ack, nack, returned };
    Kind kind;
    std::uint64_t tag = 0;
    bool multiple = false;
    std::string text{};  ///< of a returned one: why
    std::string id{};    ///< … and which
  };

  /// The tag that the next published message has.
  [[nodiscard]] std::uint64_t next_tag() const noexcept { return next_tag_; }
  /// Why it cannot be published whatever the broker is like; empty when it can.
  [[nodiscard]] std::string objection(std::string_view routing_key, const CloudEvent& event) const;
  void publish(const std::string& routing_key, const CloudEvent& event, SteadyPoint deadline);
  /// Waits for what the broker says; nothing when the time is over.
  [[nodiscard]] std::optional<News> next(SteadyPoint deadline);
  /// Whether the broker has not hung up since the last time.
  [[nodiscard]] bool alive();
  /// Why the broker takes no messages at present; empty when it does.
  [[nodiscard]] const std::string& blocked() const noexcept { return blocked_; }

 private:
  void open_socket();
  void log_in();
  void make_queue();
  /// Nothing when the time is over.
  [[nodiscard]] std::optional<amqp_frame_t> read(SteadyPoint deadline);
  [[nodiscard]] std::optional<News> on_channel(const amqp_method_t& method, SteadyPoint deadline);
  void on_connection(const amqp_method_t& method);
  [[nodiscard]] News read_returned(const amqp_basic_return_t& method, SteadyPoint deadline);
  void require(amqp_rpc_reply_t reply, const char* what);
  [[noreturn]] void fail(const std::string& what, const std::string& why, const char* hint = "") const;

  const RabbitmqSinkOptions& options_;
  const RabbitmqAddress& address_;
  Watchdog& watchdog_;
  amqp_connection_state_t state_;
  std::uint64_t next_tag_ = 1;
  std::string blocked_;
  std::vector<std::string> names_;  // of the headers of one message
  std::vector<amqp_table_entry_t> headers_;
};

}  // namespace postrider
