// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"
#include "stream_sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr std::size_t few = 10'000;
constexpr std::size_t many = 2'000'000;
constexpr std::size_t hot_every = 4;  // half a million
constexpr int rounds = 15;
constexpr double round_seconds = 0.8;

/// Appends under conditions that have the hot tag in them and look at the whole store: by type and tag, and
/// by two tags, of which the other one is new each time.
double run(StreamSandbox& sandbox) {
  EventStore store(sandbox.storage());
  const Stopwatch watch;
  std::size_t appended = 0;
  for (; watch.seconds() < round_seconds; ++appended) {
    const std::string name =
        std::to_string(static_cast<std::int64_t>(store.head())) + "-" + std::to_string(appended);
    const Query query = appended % 2 == 0 ? Query::of({{.types = {"Opened" + name}, .tags = {{"hot", "1"}}}})
                                          : Query::tags({{"hot", "1"}, {"wallet", name}});
    const AppendResult result = store.append_if({StreamSandbox::event(name, appended)}, {.query = query});
    if (!std::holds_alternative<Appended>(result)) throw std::runtime_error("a conflict that cannot be");
  }
  return static_cast<double>(appended) / watch.seconds();
}

}  // namespace

void stream_flat(Report& report, const std::string& line) {
  StreamSandbox small(BackendKind::postgres, "bench_stream_small");
  small.seed(few, hot_every);
  StreamSandbox large(BackendKind::postgres, "bench_stream_large");
  large.seed(many, hot_every);
  const Medians rates = interleave(
      line, rounds, [&] { return run(large); }, [&] { return run(small); });
  report.print({line,
                rates.ours,
                "events/s",
                "10k-events",
                rates.bare,
                Target::at_least(0.80),
                {{"rounds", double{rounds}}, {"spread", rates.spread}}});
}

}  // namespace postrider::bench
