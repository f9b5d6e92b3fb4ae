// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/failpoint.hpp"
#include "postrider/error.hpp"
#include "postrider/projection.hpp"
#include "postrider/testing.hpp"
#include "support/queue_rows.hpp"

namespace postrider {

using namespace std::chrono_literals;

/// A log, and a view of it: one row per entry, and a counter that no key protects from counting twice.
class ProjectionTest : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    open(true);
  }
  void TearDown() override {
    failpoints::clear();
    if (database_ == nullptr) return;
    define("drop table if exists " + view());
    define("drop table if exists " + view(2));
  }

  void open(bool manual) {
    if (database_ != nullptr) TearDown();
    manual_ = manual;
    rows_.reset();
    database_ = std::make_unique<test::TestDatabase>(
        backend(), test::TestDatabase::Options{.clock = manual ? &clock_ : nullptr});
    rows_.emplace(*database_, manual ? static_cast<Clock&>(clock_) : Clock::system());
    for (const int version : {1, 2}) {
      define("create table " + view(version) + " (nth integer not null, seq bigint not null)");
    }
  }
  void define(const std::string& sql) {
    Transaction tx = storage().begin();
    tx.execute(sql);
    tx.commit();
  }

  Storage& storage() { return database_->storage(); }
  std::string view(int version = 1) { return database_->table("view_v" + std::to_string(version)); }

  ProjectionRunnerOptions options(const std::string& node = "node") {
    ProjectionRunnerOptions options;
    options.node_name = node;
    if (manual_) options.clock = &clock_;
    options.log = [](LogLevel, std::string_view) {};
    return options;
  }
  /// Delays of one second sharp.
  struct EverySecond final : RetryPolicy {
    [[nodiscard]] Duration delay(Attempt, double) const override { return 1s; }
  };
  static ProjectionOptions projection(int version = 1) {
    ProjectionOptions options;
    options.name = "p";
    options.version = version;
    options.retry_policy = std::make_shared<EverySecond>();
    return options;
  }
  /// Writes the view of this version. `before` runs first, and may throw.
  std::function<void(Tx&, const LogEntry&)> writer(int version = 1,
                                                   std::function<void(const LogEntry&)> before = nullptr) {
    return [this, table = view(version), before = std::move(before)](Tx& tx, const LogEntry& entry) {
      ++handled_;
      if (before) before(entry);
      const Rows last = tx.execute("select count(*) from " + table);
      tx.execute("insert into " + table + " (nth, seq) values (?, ?)", last.integer(0, 0) + 1,
                 static_cast<std::int64_t>(entry.seq));
    };
  }
  std::function<void(Tx&)> eraser(int version = 1) {
    return [table = view(version)](Tx& tx) { tx.execute("delete from " + table); };
  }
  /// The view in the order in which it was written.
  std::vector<std::int64_t> seen(int version = 1) {
    Transaction tx = storage().begin();
    const Rows rows = tx.execute("select seq from " + view(version) + " order by nth, seq");
    tx.commit();
    std::vector<std::int64_t> seqs;
    for (std::size_t i = 0; i < rows.size(); ++i) seqs.push_back(rows.integer(i, 0));
    return seqs;
  }
  static std::vector<std::int64_t> up_to(std::int64_t last, const std::set<std::int64_t>& without = {}) {
    std::vector<std::int64_t> seqs;
    for (std::int64_t seq = 1; seq <= last; ++seq) {
      if (!without.contains(seq)) seqs.push_back(seq);
    }
    return seqs;
  }
  /// That many more finished events.
  void finish(int count) {
    for (int i = 0; i < count; ++i) {
      const std::int64_t next = rows_->last_seq() + 1;
      rows_->log({.id = 1000 + next, .type = next % 2 == 0 ? "Even" : "Odd"});
    }
  }
  /// Batches until there is nothing to do.
  static std::size_t drain(ProjectionRunner& runner) {
    std::size_t total = 0;
    for (;;) {
      const std::size_t handled = runner.run_once().handled;
      if (handled == 0) return total;
      total += handled;
    }
  }

  bool manual_ = true;
  ManualClock clock_;
  std::unique_ptr<test::TestDatabase> database_;
  std::optional<test::QueueRows> rows_;
  std::atomic<int> handled_{0};
};

}  // namespace postrider
