// SPDX-License-Identifier: Apache-2.0
#include "postrider/nats_sink.hpp"
#include "sinks/nats/nats_server.hpp"

namespace postrider::test {
namespace {

class NatsReceiver final : public Receiver {
 public:
  std::shared_ptr<Sink> sink(const SinkSettings& settings) override {
    return nats_sink({.url = server_.url(),
                      .create_stream = true,
                      .timeout = settings.timeout,
                      .cloud_events = {.mode = settings.mode},
                      .limits = settings.limits});
  }
  std::vector<Received> received() override { return server_.messages_of("postrider"); }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }
  void freeze() override { server_.freeze(); }
  void thaw() override { server_.thaw(); }

 private:
  NatsServer server_;
};

}  // namespace

std::unique_ptr<Receiver> make_receiver() {
  return std::make_unique<NatsReceiver>();
}

}  // namespace postrider::test
