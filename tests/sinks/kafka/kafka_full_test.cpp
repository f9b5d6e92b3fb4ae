// SPDX-License-Identifier: Apache-2.0
// A real broker whose disk is full, and then has room again. What it says meanwhile, where no disk can be
// mounted: KafkaMock.
#include <iostream>

#include "postrider/kafka_sink.hpp"
#include "sinks/kafka/kafka_broker.hpp"
#include "sinks/sink_fixture.hpp"
#include "support/small_disk.hpp"

namespace postrider::test {
namespace {

class KafkaFull : public SinkConformance {
 protected:
  void SetUp() override {
    if (const std::string why = disk_.mount("64m"); !why.empty()) {
      std::cerr << "\n*** KafkaFull is SKIPPED: a small file system cannot be mounted (" << why
                << "). Hint: run it as root.\n\n";
      GTEST_SKIP() << why;
    }
  }
  SmallDisk disk_;
};

TEST_F(KafkaFull, WhatHasNoRoomIsUnavailableAndComesInOrderWhenThereIsSome) {
  constexpr int count = 2'000;
  constexpr int keys = 3;
  KafkaBroker broker(disk_.file("broker"));
  const std::string topic = broker.create_topic(1);
  const auto to = kafka_sink({.brokers = broker.address(),
                              .topic = topic,
                              .timeout = 2s,
                              .limits = {.breaker_threshold = 0, .log = [](LogLevel, std::string_view) {}}});
  const std::vector<Event> events = numbered(count, keys);
  const std::vector<SinkMessage> all = messages(events);
  ASSERT_EQ(to->send(std::span(all).first(100)).kind(), PublishResult::Kind::all);
  disk_.fill();
  std::size_t taken = 100;
  PublishResult result = PublishResult::all();
  while (taken < count / 2 && result.kind() == PublishResult::Kind::all) {
    result = to->send(std::span(all).subspan(taken, 100));
    taken += result.count(100);
  }
  ASSERT_EQ(result.kind(), PublishResult::Kind::unavailable)
      << "the disk is full after " << taken << " events";
  EXPECT_NE(to->trouble(), "");
  disk_.make_room();
  // A broker that has lost its only disk gives up by itself; somebody starts it again.
  broker.kill();
  broker.start();
  EXPECT_TRUE(send_all(*to, std::span(all).subspan(taken), 100, 120s));
  EXPECT_EQ(to->trouble(), "");
  std::map<std::string, std::vector<int>> expected;
  for (int i = 0; i < count; ++i) expected["k" + std::to_string(i % keys)].push_back(i / keys);
  EXPECT_EQ(order_by_key(KafkaReader(broker.address(), topic).read()), expected);
}

}  // namespace
}  // namespace postrider::test
