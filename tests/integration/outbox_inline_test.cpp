// SPDX-License-Identifier: Apache-2.0
// `inline_dispatch`: the outbox without threads of its own, for users' tests.
#include <thread>
#include <vector>

#include "integration/outbox_fixture.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

class OutboxInline : public OutboxTest {
 protected:
  OutboxOptions inline_options() {
    OutboxOptions inline_options = options();
    inline_options.inline_dispatch = true;
    return inline_options;
  }
};

TEST_P(OutboxInline, ManyThreadsCommitAndNoResultIsLost) {
  open();
  Outbox outbox{*storage_, inline_options()};
  start(outbox);
  constexpr int threads = 4;
  constexpr int each = 50;
  std::vector<std::thread> publishers;
  for (int t = 0; t < threads; ++t) {
    publishers.emplace_back([&] {
      for (int i = 0; i < each; ++i) publish(outbox, event());
    });
  }
  for (std::thread& publisher : publishers) publisher.join();
  outbox.stop();
  EXPECT_EQ(seen_.count(), static_cast<std::size_t>(threads * each));
  EXPECT_EQ(counts().done, threads * each);
  EXPECT_EQ(counts().pending, 0);
}

TEST_P(OutboxInline, StopInsideAListenerIsRefusedInsteadOfWaitingForItself) {
  open();
  Outbox outbox{*storage_, inline_options()};
  OutboxOptions other_options = inline_options();
  Outbox other{*storage_, other_options};
  std::vector<ErrorCode> refused;
  const auto stop = [&] {
    try {
      outbox.stop();
    } catch (const Error& error) {
      refused.push_back(error.code());
    }
  };
  outbox.on("direct", [&](const Event&) { stop(); });
  outbox.on("nested", [&](const Event&) { publish(other, event("inner")); });
  other.on("inner", [&](const Event&) { stop(); });
  outbox.start();
  other.start();
  publish(outbox, event("direct"));
  publish(outbox, event("nested"));
  EXPECT_EQ(refused, std::vector<ErrorCode>(2, ErrorCode::invalid_argument));
  EXPECT_EQ(counts().done, 3);
  outbox.stop();
  EXPECT_FALSE(outbox.running()) << "outside it may stop, though listeners have run on this thread";
}

TEST_P(OutboxInline, AListenerInsidePollMayPoll) {
  open();
  {
    Outbox elsewhere{*storage_, without_poller()};
    for (int i = 0; i < 3; ++i) publish(elsewhere, event());
  }
  OutboxOptions one_by_one = inline_options();
  one_by_one.poller_batch_size = 1;
  Outbox outbox{*storage_, one_by_one};
  std::vector<std::size_t> brought;
  outbox.on_all([&](const Event&) { brought.push_back(outbox.poll()); });
  outbox.start();
  EXPECT_EQ(outbox.poll(), 1U);
  EXPECT_EQ(brought, (std::vector<std::size_t>{0, 1, 1}));
  EXPECT_EQ(counts().done, 3);
}

POSTRIDER_FOR_EACH_BACKEND(OutboxInline);

}  // namespace
}  // namespace postrider
