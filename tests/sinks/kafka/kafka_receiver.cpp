// SPDX-License-Identifier: Apache-2.0
#include "postrider/kafka_sink.hpp"
#include "sinks/kafka/kafka_broker.hpp"
#include "sinks/receiver.hpp"

namespace postrider::test {
namespace {

class KafkaReceiver final : public Receiver {
 public:
  KafkaReceiver() {
    broker_.start();  // a test that failed may have left it dead, or frozen
    broker_.thaw();
    topic_ = broker_.create_topic(3);
    reader_ = std::make_unique<KafkaReader>(broker_.address(), topic_);
  }

  std::shared_ptr<Sink> sink(const SinkSettings& settings) override {
    return kafka_sink({.brokers = broker_.address(),
                       .topic = topic_,
                       .timeout = settings.timeout,
                       .cloud_events = {.mode = settings.mode},
                       .limits = settings.limits});
  }
  std::vector<Received> received() override { return reader_->read(); }

  void kill() override { broker_.kill(); }
  void start() override { broker_.start(); }
  void freeze() override { broker_.freeze(); }
  void thaw() override { broker_.thaw(); }

 private:
  KafkaBroker& broker_ = KafkaBroker::shared();
  std::string topic_;
  std::unique_ptr<KafkaReader> reader_;
};

}  // namespace

std::unique_ptr<Receiver> make_receiver() {
  return std::make_unique<KafkaReceiver>();
}

}  // namespace postrider::test
