// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "bare_writer.hpp"
#include "outbox.hpp"
#include "sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr std::size_t rows = 4'000;
constexpr std::int64_t keys = 4;
constexpr std::uint64_t fails_once_in = 14;

/// A few long lines of events, each to be delivered in order.
void seed(Sandbox& sandbox) {
  sandbox.clear();
  sandbox.seed(rows);
  sandbox.run("update " + sandbox.table() + " set ordering_key = " +
              (sandbox.kind() == BackendKind::mariadb ? "concat('k', mod(seq, " + std::to_string(keys) + "))"
                                                      : "'k' || (seq % " + std::to_string(keys) + ")"));
}

/// Returns the rate at which all of it was delivered.
double drain(Sandbox& sandbox, bool with_failures) {
  seed(sandbox);
  OutboxOptions options{.poller_batch_size = 500};
  options.retry_base_delay = std::chrono::milliseconds{1};
  options.retry_max_delay = std::chrono::milliseconds{1};
  Outbox outbox(sandbox.storage(), options);
  std::atomic<std::size_t> left{rows};
  outbox.on(EventType(bench_type), [&](const Event& event, const Delivery& delivery) {
    const bool chosen = std::hash<std::string_view>{}(event.id().view()) % fails_once_in == 0;
    if (with_failures && chosen && delivery.failed == Attempt{0}) return Outcome::failed("now and then");
    if (--left == 0) left.notify_all();
    return Outcome::done();
  });
  const Stopwatch watch;
  outbox.start();
  for (std::size_t now = left; now != 0; now = left) left.wait(now);
  const double rate = static_cast<double>(rows) / watch.seconds();
  outbox.stop();
  sandbox.expect_all_done(rows);
  return rate;
}

}  // namespace

void outbox_ordered_retries(Report& report, BackendKind kind, const std::string& line) {
  Sandbox sandbox(kind, "bench_ordered");
  const Medians rates = interleave(
      line, 3, [&] { return drain(sandbox, true); }, [&] { return drain(sandbox, false); });
  report.print({line,
                rates.ours,
                "events/s",
                "without-failures",
                rates.bare,
                {},
                {{"keys", static_cast<double>(keys)}, {"spread", rates.spread}}});
}

}  // namespace postrider::bench
