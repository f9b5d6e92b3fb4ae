// SPDX-License-Identifier: Apache-2.0
// The connection breaks after COMMIT was sent: nobody knows whether it happened, and nothing may go wrong
// either way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

/// host:port of a URL, and where it stands.
struct Address {
  std::size_t begin;
  std::size_t size;
  std::string host;
  std::uint16_t port;
};

Address address_of(const std::string& url) {
  std::size_t begin = url.find("://") + 3;
  if (const std::size_t at = url.find('@', begin); at != std::string::npos) begin = at + 1;
  const std::size_t end = url.find('/', begin);
  const std::string text = url.substr(begin, end - begin);
  const std::size_t colon = text.find(':');
  return {begin, text.size(), text.substr(0, colon),
          static_cast<std::uint16_t>(std::stoi(text.substr(colon + 1)))};
}

class CutConnection : public ::testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    if (!CrashDatabase::available(GetParam())) GTEST_SKIP() << "no servers. Hint: scripts/with-servers";
    database_.emplace(GetParam());
    direct_ = database_->open();
    direct_->migrate();
    // Only the publisher's connections go through the proxy, so that it is always his COMMIT that is hit.
    const Address server = address_of(database_->url());
    proxy_.emplace(server.host, server.port);
    std::string url = database_->url();
    url.replace(server.begin, server.size, "127.0.0.1:" + std::to_string(proxy_->port()));
    StorageOptions options;
    options.schema = Identifier(database_->schema());
    options.log = {};
    proxied_ = open(url, options);

    outbox_.emplace(*direct_,
                    OutboxOptions{.poller_interval = 50ms, .lease = 500ms, .metrics = &metrics_, .log = {}});
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
