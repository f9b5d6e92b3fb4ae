// SPDX-License-Identifier: Apache-2.0
// The connection breaks after COMMIT was sent: nobody knows whether it happened, and nothing may go wrong
// either way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <iostream>
#include <optional>

#include "postrider/open.hpp"
#include "postrider/postrider.hpp"
#include "postrider/testing.hpp"
#include "support/cutting_proxy.hpp"
#include "support/shop.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using testing::RecordingListener;
using testing::RecordingMetrics;

constexpr int rounds = 5;
constexpr auto patience = 20s;  // twenty times io_timeout

class CutConnection : public ::testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    if (!CrashDatabase::available(GetParam())) GTEST_SKIP() << "no servers. Hint: scripts/with-servers";
    database_.emplace(GetParam());
    direct_ = database_->open();
    direct_->migrate();
    // Only the publisher's connections go through the proxy, so that it is always his COMMIT that is hit.
    const ServerAddress server = server_of(database_->url());
    proxy_.emplace(server.host, server.port);
    StorageOptions options;
    options.schema = Identifier(database_->schema());
    options.log = {};
    options.connect_timeout = 1s;
    options.acquire_timeout = 1s;
    options.io_timeout = 1s;
    proxied_ = open(url_through(database_->url(), proxy_->port()), options);

    run_outbox(500ms);
  }

  void run_outbox(Duration lease) {
    outbox_.emplace(*direct_,
                    OutboxOptions{.poller_interval = 50ms, .lease = lease, .metrics = &metrics_, .log = {}});
    outbox_->on("OrderPlaced", listener_);
    outbox_->start();
  }

  [[nodiscard]] bool there(const EventId& id) { return outbox_->admin().find(id).has_value(); }

  /// Places one order; `before_commit` prepares the accident. Returns what commit threw.
  template <class F>
  std::optional<Error> place(const Order& order, F&& before_commit) {
    auto tx = proxied_->begin();
    Shop(*proxied_, database_->schema()).insert(tx, order);
    tx.after_commit([this] { ++committed_hooks_; });
    tx.after_rollback([this] { ++rolled_back_hooks_; });
    outbox_->publish(tx, event_of(order).build());
    before_commit();
    try {
      tx.commit();
    } catch (const Error& error) {
      return error;
    }
    return std::nullopt;
  }

  /// What it threw, if it has come back in time. Otherwise the connections are cut, so that it does.
  template <class F>
  std::optional<Error> error_in_time(F&& run) {
    auto result = std::async(std::launch::async, [&]() -> std::optional<Error> {
      try {
        run();
      } catch (const Error& error) {
        return error;
      }
      return std::nullopt;
    });
    if (result.wait_for(patience) == std::future_status::timeout) {
      ADD_FAILURE() << "it waits for a server that is silent";
      proxy_->resume();
      proxy_->cut_all();
    }
    return result.get();
  }

  std::optional<CrashDatabase> database_;
  std::unique_ptr<Storage> direct_;
  std::optional<CuttingProxy> proxy_;
  std::unique_ptr<Storage> proxied_;
  RecordingMetrics metrics_;
  RecordingListener listener_;
  int committed_hooks_ = 0;
  int rolled_back_hooks_ = 0;
  std::optional<Outbox> outbox_;  // last: its workers use the rest
};

TEST_P(CutConnection, HazardO9ACommitInDoubtIsDeliveredByThePollerOnce) {
  for (int i = 0; i < rounds; ++i) {
    const Order order{new_event_id(), i % 2 == 0 ? "" : "key", i, Fate::ok};
    const auto error = place(order, [&] { proxy_->cut_after("COMMIT"); });
    ASSERT_TRUE(error.has_value()) << "the connection was not cut";
    EXPECT_TRUE(error->in_doubt()) << error->what();
    EXPECT_TRUE(error->connection_lost()) << error->what();
    EXPECT_TRUE(there(order.id)) << "the server had carried it out";
    EXPECT_EQ(committed_hooks_ + rolled_back_hooks_, 0) << "nobody knows how it ended, so nobody is told";
  }
  EXPECT_EQ(proxy_->cuts(), rounds);
  EXPECT_TRUE(await_nothing_pending(*direct_));
  EXPECT_EQ(metrics_.get(RecordingMetrics::Counter::hot_enqueued), 0U) << "handed over without knowing";
  EXPECT_EQ(listener_.count(), static_cast<std::size_t>(rounds));
  std::set<EventId> ids;
  for (const auto& received : listener_.received()) {
    ids.insert(received.event.id());
    EXPECT_EQ(received.delivery.source, Source::cold);
  }
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(rounds));
  EXPECT_EQ(outbox_->admin().counts().done, rounds);

  // The pool has forgotten the broken connections.
  EXPECT_FALSE(place({new_event_id(), "", rounds, Fate::ok}, [] {}).has_value());
  EXPECT_TRUE(listener_.await(rounds + 1));
  EXPECT_EQ(committed_hooks_, 1);
  EXPECT_TRUE(await_nothing_pending(*direct_));
}

TEST_P(CutConnection, HazardO9ACommitInDoubtDoesNotHoldUpItsKeyUntilItsLeaseIsOver) {
  run_outbox(1h);
  for (int i = 0; i < rounds; ++i) {
    const auto error = place({new_event_id(), "key", 2 * i, Fate::ok}, [&] { proxy_->cut_after("COMMIT"); });
    ASSERT_TRUE(error.has_value() && error->in_doubt());
    EXPECT_FALSE(place({new_event_id(), "key", 2 * i + 1, Fate::ok}, [] {}).has_value());
  }
  EXPECT_TRUE(await_nothing_pending(*direct_));
  EXPECT_EQ(listener_.count(), static_cast<std::size_t>(2 * rounds));
}

TEST_P(CutConnection, HazardO9ACommitThatNeverArrivedIsNeverDelivered) {
  for (int i = 0; i < rounds; ++i) {
    const Order order{new_event_id(), "", i, Fate::ok};
    const int cuts = proxy_->cuts();
    const auto error = place(order, [&] {
      proxy_->cut_all();
      const auto deadline = std::chrono::steady_clock::now() + 10s;
      while (proxy_->cuts() == cuts && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    });
    ASSERT_TRUE(error.has_value());
    EXPECT_TRUE(error->in_doubt() || error->retryable()) << error->what();
    EXPECT_FALSE(there(order.id)) << "the server never saw the COMMIT";
  }
  EXPECT_EQ(committed_hooks_, 0);
  // Long after the first event's lease would have ended.
  EXPECT_TRUE(metrics_.await(RecordingMetrics::Counter::claims,
                             metrics_.get(RecordingMetrics::Counter::claims) + 15));
  EXPECT_EQ(listener_.count(), 0U);
  const OutboxCounts counts = outbox_->admin().counts();
  EXPECT_EQ(counts.pending + counts.done + counts.dead, 0);
}

TEST_P(CutConnection, AServerThatFallsSilentIsGivenUp) {
  Transaction tx = proxied_->begin();
  tx.execute("SELECT 1");
  proxy_->stall();
  const auto asked = error_in_time([&] { tx.execute("SELECT 2"); });
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(asked->code(), ErrorCode::unavailable) << asked->what();
  EXPECT_TRUE(asked->connection_lost());
  EXPECT_TRUE(asked->retryable());
  EXPECT_FALSE(asked->in_doubt());
  EXPECT_FALSE(error_in_time([&] { tx.rollback(); }).has_value());
  // One cannot be connected to, either.
  const auto pinged = error_in_time([&] { proxied_->ping(); });
  ASSERT_TRUE(pinged.has_value());
  EXPECT_EQ(pinged->code(), ErrorCode::unavailable) << pinged->what();
  EXPECT_TRUE(error_in_time([&] { proxied_->migrate(); }).has_value());
  proxy_->resume();
  EXPECT_NO_THROW(proxied_->ping()) << "and it is used again when it is back";
}

TEST_P(CutConnection, HazardO9ACommitThatIsNotAnsweredInTimeIsInDoubt) {
  const Order order{new_event_id(), "", 1, Fate::ok};
  std::optional<Error> error;
  EXPECT_FALSE(error_in_time([&] { error = place(order, [&] { proxy_->stall(); }); }).has_value());
  ASSERT_TRUE(error.has_value());
  EXPECT_TRUE(error->in_doubt()) << error->what();
  EXPECT_FALSE(error->retryable());
  EXPECT_EQ(committed_hooks_ + rolled_back_hooks_, 0);
}

TEST_P(CutConnection, ManyBytesThatNobodyTakesAreGivenUp) {
  Transaction tx = proxied_->begin();
  tx.execute("SELECT 1");
  proxy_->stall();
  const std::string large(12'000'000, 'x');  // more than sockets hold
  const auto error = error_in_time([&] { tx.execute("SELECT LENGTH(?)", large); });
  ASSERT_TRUE(error.has_value());
  EXPECT_TRUE(error->connection_lost()) << error->what();
}

TEST_P(CutConnection, AMigrationWaitsForAnotherOneHoweverSilentTheServerIs) {
  const bool postgres = GetParam() == BackendKind::postgres;
  Transaction other = direct_->begin();
  if (postgres) {
    other.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))",
                  "postrider migrations of " + database_->schema());
  } else {
    other.execute("SELECT GET_LOCK(CONCAT('postrider.migrate.', SHA1(CONCAT(DATABASE(), '.', ?))), 0)",
                  database_->schema());
  }
  auto report = std::async(std::launch::async, [&] { return proxied_->migrate(); });
  EXPECT_EQ(report.wait_for(3s), std::future_status::timeout) << "this is longer than a server may be silent";
  if (!postgres) other.execute("SELECT RELEASE_ALL_LOCKS()");
  other.rollback();
  EXPECT_TRUE(report.get().steps.empty());
}

std::vector<BackendKind> servers() {
  std::vector<BackendKind> kinds = crash_backends();
  std::erase(kinds, BackendKind::sqlite);
  return kinds;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CutConnection);
INSTANTIATE_TEST_SUITE_P(Backends, CutConnection, ::testing::ValuesIn(servers()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace postrider::test
