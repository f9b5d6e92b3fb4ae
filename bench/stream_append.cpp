// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <barrier>
#include <thread>

#include "stream.hpp"
#include "stream_sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr std::size_t present = 500'000;
// Many short rounds: what else the machine does comes and goes within seconds, and a commit waits for the
// disk.
constexpr int rounds = 15;
constexpr double round_seconds = 0.8;

/// Appends one after the other, each under the condition that nobody else wrote to the caller's wallet.
class Caller {
 public:
  Caller(EventStore& store, std::string wallet, std::size_t events)
      : store_(store), wallet_(std::move(wallet)), events_(events), after_(store.head()) {}

  void append() {
    std::vector<AppendEvent> events;
    for (std::size_t i = 0; i < events_; ++i) events.push_back(StreamSandbox::event(wallet_, ++number_));
    const AppendResult result = store_.append_if(events, {.query = query_, .after = after_});
    if (!std::holds_alternative<Appended>(result))
      throw std::runtime_error("an append was in conflict with itself");
    after_ = std::get<Appended>(result).last;
  }

 private:
  EventStore& store_;
  const std::string wallet_;
  const Query query_ = StreamSandbox::own(wallet_);
  const std::size_t events_;
  Position after_;
  std::size_t number_ = 0;
};

/// Events per second.
double run_ours(StreamSandbox& sandbox, int callers, std::size_t events = 1) {
  EventStore store(sandbox.storage());
  std::atomic<std::size_t> appended{0};
  std::atomic<bool> over{false};
  std::barrier ready(callers + 1);
  std::vector<std::jthread> threads;
  for (int i = 0; i < callers; ++i) {
    threads.emplace_back([&, i] {
      Caller caller(store, "caller" + std::to_string(i), events);
      ready.arrive_and_wait();
      std::size_t mine = 0;
      for (; !over; ++mine) caller.append();
      appended += mine;
    });
  }
  ready.arrive_and_wait();
  const Stopwatch watch;
  while (watch.seconds() < round_seconds) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  over = true;
  threads.clear();
  return static_cast<double>(appended * events) / watch.seconds();
}

double run_bare(StreamSandbox& sandbox, std::size_t events = 1) {
  const std::unique_ptr<BareAppender> appender = sandbox.bare();
  const std::int64_t hash = StreamKeys().of_query(StreamSandbox::own("caller0")).front().front();
  auto after = static_cast<std::int64_t>(EventStore(sandbox.storage()).head());
  const Stopwatch watch;
  std::size_t appended = 0;
  std::vector<BareStreamRow> rows;
  while (watch.seconds() < round_seconds) {
    rows.clear();
    for (std::size_t i = 0; i < events; ++i) rows.push_back(StreamSandbox::row("caller0", ++appended));
    after = appender->append(rows, hash, after);
  }
  return static_cast<double>(appended) / watch.seconds();
}

}  // namespace

void stream_append_if(Report& report, BackendKind kind, const std::string& line) {
  StreamSandbox sandbox(kind, "bench_stream_append");
  sandbox.seed(present);
  const bool postgres = kind == BackendKind::postgres;
  const auto print = [&](const std::string& name, const Medians& rates, const char* baseline, Target target) {
    report.print({name,
                  rates.ours,
                  "events/s",
                  baseline,
                  rates.bare,
                  target,
                  {{"rounds", double{rounds}}, {"spread", rates.spread}}});
  };
  if (const std::string name = line + ".c1"; report.wanted(name)) {
    const Medians rates = interleave(
        name, rounds, [&] { return run_ours(sandbox, 1); }, [&] { return run_bare(sandbox); });
    print(name, rates, postgres ? "bare-libpq" : "bare-sqlite", Target::at_least(0.85));
  }
  const auto several = [&](int callers, Target target) {
    const std::string name = line + ".c" + std::to_string(callers);
    if (!report.wanted(name)) return;
    const Medians rates = interleave(
        name, rounds, [&] { return run_ours(sandbox, callers); }, [&] { return run_ours(sandbox, 1); });
    print(name, rates, "one-caller", target);
  };
  several(16, Target::at_least(postgres ? 4 : 3));
  several(256, postgres ? Target::at_least(12) : Target{});
}

void stream_append_batch(Report& report, const std::string& line) {
  constexpr std::size_t events = 100;
  StreamSandbox sandbox(BackendKind::postgres, "bench_stream_batch");
  sandbox.seed(present);
  const Medians rates = interleave(
      line, rounds, [&] { return run_ours(sandbox, 1, events); }, [&] { return run_bare(sandbox, events); });
  report.print({line,
                rates.ours,
                "events/s",
                "bare-libpq",
                rates.bare,
                Target::at_least(0.70),
                {{"rounds", double{rounds}}, {"spread", rates.spread}}});
}

}  // namespace postrider::bench
