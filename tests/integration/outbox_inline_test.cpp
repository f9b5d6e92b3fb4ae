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

POSTRIDER_FOR_EACH_BACKEND(OutboxInline);

}  // namespace
}  // namespace postrider
