// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinks/receiver.hpp"
#include "support/eventually.hpp"

namespace postrider::test {

using namespace std::chrono_literals;

/// What every sink keeps, whoever is behind it.
class SinkConformance : public ::testing::Test {
 protected:
  void SetUp() override { receiver_ = make_receiver(); }

  static std::vector<SinkMessage> messages(const std::vector<Event>& events) {
    std::vector<SinkMessage> all;
    all.reserve(events.size());
    for (const Event& event : events) all.push_back({.event = &event, .key = event.ordering_key()});
    return all;
  }
  /// `count` events of `keys` keys, numbered per key from 0: {"key":"k3","n":7}.
  static std::vector<Event> numbered(int count, int keys, const std::string& prefix = "k");

  /// Sends all, again and again from the first that was not taken, as relay and outbox do. False when it
  /// takes longer than `limit`.
  [[nodiscard]] static bool send_all(Sink& sink, std::span<const SinkMessage> all, std::size_t batch = 100,
                                     std::chrono::seconds limit = 60s);
  /// The numbers in the order of their first arrival, per key. Later ones are repeats with the same id.
  [[nodiscard]] static std::map<std::string, std::vector<int>> order_by_key(const std::vector<Received>& all);
  void expect_complete_and_in_order(int count, int keys, const std::string& prefix = "k");

  std::unique_ptr<Receiver> receiver_;
};

}  // namespace postrider::test
