// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <amqp.h>

#include <string>
#include <utility>
#include <vector>

#include "sinks/receiver.hpp"

namespace postrider::test {

/// The other side: reads queues with the client library alone. Throws std::runtime_error when the broker does
/// not do as it is told.
class RabbitmqClient {
 public:
  explicit RabbitmqClient(int port);
  ~RabbitmqClient();
  RabbitmqClient(const RabbitmqClient&) = delete;
  RabbitmqClient& operator=(const RabbitmqClient&) = delete;

  using Arguments = std::vector<std::pair<std::string, std::string>>;
  /// A durable one. Arguments that are numbers are passed as such.
  void declare_queue(const std::string& name, const Arguments& arguments = {});
  void declare_exchange(const std::string& name, const std::string& type);
  void bind(const std::string& queue, const std::string& exchange, const std::string& routing_key);
  void remove_queue(const std::string& name);
  /// Takes everything out that is in the queue by now, in its order.
  void take_all(const std::string& queue, std::vector<Received>& into);
  [[nodiscard]] std::vector<Received> take_all(const std::string& queue) {
    std::vector<Received> all;
    take_all(queue, all);
    return all;
  }

 private:
  void require(amqp_rpc_reply_t reply, const char* what);

  amqp_connection_state_t state_;
  std::string consuming_{};
  int marks_ = 0;
};

}  // namespace postrider::test
