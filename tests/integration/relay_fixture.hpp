// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "postrider/append_event.hpp"
#include "postrider/error.hpp"
#include "postrider/relay.hpp"
#include "postrider/testing.hpp"
#include "storage/stream_store.hpp"
#include "support/backend.hpp"

namespace postrider {

using namespace std::chrono_literals;

/// An event store, and relays on it that a test runs by hand, with a clock that stands still; or threads and
/// real time.
class RelayTest : public test::BackendTest {
 protected:
  using Latch = testing::Latch;

  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    open(true);
  }
  void open(bool manual) {
    manual_ = manual;
    database_ = std::make_unique<test::TestDatabase>(
        backend(), test::TestDatabase::Options{.clock = manual ? &clock_ : nullptr});
  }
  Storage& storage() { return database_->storage(); }
  RelayAdmin admin() { return RelayAdmin(storage()); }

  /// Returns the last position.
  std::int64_t append(int count, const std::string& type = "Moved", const Tags& tags = {}) {
    std::vector<AppendEvent> events;
    for (int i = 0; i < count; ++i)
      events.push_back(AppendEvent::builder(type).tags(tags).data("{}").build());
    const AppendRequest request{.events = events};
    const auto verdicts = storage().stream_store().append({&request, 1});
    storage().stream_grown()->notify();
    return static_cast<std::int64_t>(std::get<Appended>(verdicts.at(0)).last);
  }
  RelayOptions options(const std::string& node, Leadership leadership = Leadership::global) {
    RelayOptions options;
    options.leadership = leadership;
    options.node_name = node;
    options.metrics = &metrics_;
    if (manual_) options.clock = &clock_;
    options.log = [](LogLevel, std::string_view) {};
    return options;
  }
  /// The publisher of that name, which all nodes share: what it got, it got from whichever.
  std::shared_ptr<Latch> latch(const std::string& name) {
    auto& one = latches_[name];
    if (one == nullptr) one = std::make_shared<Latch>(name);
    return one;
  }
  static std::vector<Position> range(std::int64_t first, std::int64_t last) {
    std::vector<Position> positions;
    for (std::int64_t i = first; i <= last; ++i) positions.push_back(Position{i});
    return positions;
  }
  PairStatus status(const std::string& topic, const std::string& publisher) {
    const auto found = admin().find(topic, publisher);
    EXPECT_TRUE(found.has_value()) << topic << ", " << publisher;
    return found.value_or(PairStatus{});
  }

  bool manual_ = true;
  ManualClock clock_;
  testing::RecordingMetrics metrics_;
  std::map<std::string, std::shared_ptr<Latch>> latches_;
  std::unique_ptr<test::TestDatabase> database_;
};

}  // namespace postrider
