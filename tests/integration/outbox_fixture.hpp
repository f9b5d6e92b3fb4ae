// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "postrider/outbox.hpp"
#include "postrider/testing.hpp"
#include "support/backend.hpp"
#include "support/foreign_connection.hpp"

namespace postrider {

using namespace std::chrono_literals;
using Counter = testing::RecordingMetrics::Counter;

/// A fresh database per test, with the tables made. `clock_` drives it when the test asks for it.
class OutboxTest : public test::BackendTest {
 protected:
  /// `manual`: the database's time and the outboxes' time come from `clock_`.
  void open(bool manual = false) {
    manual_ = manual;
    database_ = std::make_unique<test::TestDatabase>(
        backend(),
        test::TestDatabase::Options{.clock = manual ? &clock_ : nullptr, .migrate = true, .pool_size = 8});
    storage_ = &database_->storage();
  }

  /// Options for tests: quiet, counted, small delays.
  OutboxOptions options() {
    OutboxOptions options;
    if (manual_) options.clock = &clock_;
    options.metrics = &metrics_;
    options.log = quiet();
    options.completer_linger = 0ms;
    return options;
  }
  /// Looks into the database only when the test calls `poll()`.
  OutboxOptions without_poller() {
    OutboxOptions manual = options();
    manual.poller_enabled = false;
    return manual;
  }
  static LogCallback quiet() {
    return [](LogLevel, std::string_view) {};
  }

  static Event event(const std::string& type = "T", const std::string& payload = "{}") {
    return Event::json(type, payload);
  }
  static Event keyed(const std::string& key, int number) {
    return Event::builder("T").ordering_key(key).json(std::to_string(number)).build();
  }

  EventId publish(Outbox& outbox, const Event& event) {
    auto tx = storage_->begin();
    const EventId id = outbox.publish(tx, event).id();
    tx.commit();
    return id;
  }

  /// Everything goes to `seen_`.
  void start(Outbox& outbox) {
    outbox.on_all(seen_);
    outbox.start();
  }

  /// The user's own connection to the same database, see `publish_adopted`.
  std::unique_ptr<test::ForeignConnection> connect_foreign() {
    return test::ForeignConnection::open(storage_->kind(), database_->url());
  }
  /// In a transaction that is the user's own: committed, but not yet signalled.
  static Staged publish_adopted(Outbox& outbox, test::ForeignConnection& foreign, const Event& event) {
    foreign.begin();
    AdoptedTx tx = foreign.adopt();
    Staged staged = outbox.publish(tx, event);
    foreign.commit();
    return staged;
  }

  std::optional<OutboxRecord> row(const EventId& id) { return OutboxAdmin(*storage_).find(id); }
  EventStatus status(const EventId& id) { return row(id).value().status; }
  OutboxCounts counts() { return OutboxAdmin(*storage_).counts(); }

  static std::map<std::string, int> times(const testing::RecordingListener& listener) {
    std::map<std::string, int> result;
    for (const Event& event : listener.events()) ++result[event.id().str()];
    return result;
  }
  static std::vector<std::string> payloads(const testing::RecordingListener& listener) {
    std::vector<std::string> result;
    for (const Event& event : listener.events()) result.emplace_back(event.payload());
    return result;
  }

  bool manual_ = false;
  ManualClock clock_;
  testing::RecordingMetrics metrics_;
  testing::RecordingListener seen_;
  std::unique_ptr<test::TestDatabase> database_;
  Storage* storage_ = nullptr;
};

}  // namespace postrider
