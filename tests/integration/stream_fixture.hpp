// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "postrider/decision.hpp"
#include "postrider/error.hpp"
#include "postrider/event_store.hpp"
#include "support/backend.hpp"

namespace postrider {

using namespace std::chrono_literals;

/// A fresh event store per test, on each backend.
class StreamTest : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend());
    store_.emplace(storage());
  }
  [[nodiscard]] Storage& storage() { return database_->storage(); }
  [[nodiscard]] EventStore& store() { return *store_; }

  [[nodiscard]] static AppendEvent happened(const std::string& type, const Tags& tags = {},
                                            const std::string& data = "{}") {
    return AppendEvent::builder(type).tags(tags).data(data).build();
  }
  [[nodiscard]] static std::vector<std::int64_t> positions(EventStream stream) {
    std::vector<std::int64_t> found;
    for (const StoredEvent& event : stream) found.push_back(static_cast<std::int64_t>(event.position()));
    return found;
  }
  template <class Action>
  static ErrorCode refusal(Action action) {
    try {
      action();
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorCode::database;
  }
  /// Runs `work(number)` on several threads at once and waits for all.
  template <class Work>
  static void in_parallel(int threads, const Work& work) {
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; ++i) running.emplace_back([&, i] { work(i); });
  }

  std::optional<test::TestDatabase> database_;
  std::optional<EventStore> store_;
};

}  // namespace postrider
