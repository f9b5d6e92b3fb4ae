// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "postrider/rabbitmq_sink.hpp"
#include "sinks/rabbitmq/rabbitmq_client.hpp"
#include "sinks/rabbitmq/rabbitmq_server.hpp"
#include "sinks/receiver.hpp"

namespace postrider::test {
namespace {

/// A queue of its own for each test.
class RabbitmqReceiver final : public Receiver {
 public:
  RabbitmqReceiver() {
    static int queues = 0;
    queue_ = "events-" + std::to_string(++queues);
    client().declare_queue(queue_);
  }
  std::shared_ptr<Sink> sink(const SinkSettings& settings) override {
    return rabbitmq_sink({.url = server_.url(),
                          .queue = queue_,
                          .timeout = settings.timeout,
                          .cloud_events = {.mode = settings.mode},
                          .limits = settings.limits});
  }
  std::vector<Received> received() override {
    try {
      client().take_all(queue_, received_);
    } catch (const std::runtime_error&) {
      // The connection has ended with its server. What was not acknowledged comes again.
      client_.reset();
      client().take_all(queue_, received_);
    }
    return received_;
  }
  void kill() override {
    // The broker writes down lazily that a queue exists; one that is killed right after forgets it with all
    // that was in it, whatever it has confirmed.
    if (!written_down_) server_.control({"eval", "mnesia:sync_log()."});
    written_down_ = true;
    server_.kill();
  }
  void start() override { server_.start(); }
  void freeze() override { server_.freeze(); }
  void thaw() override { server_.thaw(); }

 private:
  RabbitmqClient& client() {
    if (!client_) client_.emplace(server_.port());
    return *client_;
  }

  RabbitmqServer& server_ = RabbitmqServer::shared();
  std::optional<RabbitmqClient> client_;
  std::string queue_;
  std::vector<Received> received_;
  bool written_down_ = false;
};

}  // namespace

std::unique_ptr<Receiver> make_receiver() {
  return std::make_unique<RabbitmqReceiver>();
}

}  // namespace postrider::test
