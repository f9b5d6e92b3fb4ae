// SPDX-License-Identifier: Apache-2.0
#include "serve.hpp"

#if !defined(POSTRIDER_BENCH_PROGRAM)

namespace postrider::bench {
void api_read(Report& /*report*/, BackendKind /*kind*/, const std::string& line) {
  throw Unavailable(line + " needs the program");
}
}  // namespace postrider::bench

#else

#include <algorithm>
#include <mutex>
#include <thread>

#include "bare_http_connection.hpp"
#include "serve_process.hpp"

namespace postrider::bench {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int connections = 8;
constexpr int requests_per_second = 2'000;
constexpr auto round_time = std::chrono::seconds{2};
constexpr std::size_t rounds = 5;
/// Rounds in which the host took more than this are repeated, up to so many in all.
constexpr double quiet_percent = 1;
constexpr std::size_t most_rounds = 20;
constexpr int appends_per_second = 100;
constexpr int events_per_append = 20;

/// Appends events at an even pace, for the relay of another process, until it dies.
class Load {
 public:
  explicit Load(Storage& storage)
      : store_(storage), thread_([this](const std::stop_token& stop) { run(stop); }) {}

 private:
  void run(const std::stop_token& stop) {
    constexpr auto pause = std::chrono::milliseconds{1000 / appends_per_second};
    for (auto next = SteadyClock::now(); !stop.stop_requested(); next += pause) {
      std::this_thread::sleep_until(next);
      std::vector<AppendEvent> events;
      for (std::size_t i = 0; i < events_per_append; ++i) {
        events.push_back(
            AppendEvent::builder("BenchEvent").tag("wallet_id", "1").data(payload_200(i)).build());
      }
      store_.append(events);
    }
  }

  EventStore store_;
  std::jthread thread_;  // last: it uses the above
};

/// Latencies in ms at that rate, from when a request was due to its whole answer: who has to wait because an
/// earlier answer is late counts the wait.
std::vector<double> ask(std::uint16_t port, const std::string& path) {
  std::mutex mutex;
  std::vector<double> all;
  std::string failure;
  const auto begin = SteadyClock::now() + std::chrono::milliseconds{50};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < connections; ++i) {
      threads.emplace_back([&, i] {
        std::vector<double> mine;
        try {
          HttpConnection connection(port);
          const std::string request = HttpConnection::get_request(path);
          const auto pause =
              std::chrono::nanoseconds(std::chrono::seconds{1}) * connections / requests_per_second;
          for (auto due = begin + pause * i / connections; due < begin + round_time; due += pause) {
            std::this_thread::sleep_until(due);
            (void)connection.exchange(request);
            mine.push_back(std::chrono::duration<double, std::milli>(SteadyClock::now() - due).count());
          }
        } catch (const std::exception& error) {
          const std::lock_guard lock(mutex);
          failure = error.what();
        }
        const std::lock_guard lock(mutex);
        all.insert(all.end(), mine.begin(), mine.end());
      });
    }
  }
  if (!failure.empty()) throw std::runtime_error(path + ": " + failure);
  return all;
}

struct Round {
  double ours50 = 0;
  double ours99 = 0;
  double bare50 = 0;
  double bare99 = 0;
  double stolen = 0;  ///< percent
};

Round measure(std::uint16_t port) {
  const StolenTime stolen;
  const std::vector<double> ours = ask(port, "/api/outbox/publishers/StatisticsPublisher");
  const std::vector<double> bare = ask(port, "/livez");
  return {.ours50 = percentile(ours, 0.50),
          .ours99 = percentile(ours, 0.99),
          .bare50 = percentile(bare, 0.50),
          .bare99 = percentile(bare, 0.99),
          .stolen = stolen.percent()};
}

}  // namespace

void api_read(Report& report, BackendKind kind, const std::string& line) {
  constexpr double limit_ms = 5;
  Sandbox sandbox(kind, "bench_api_read");
  const ServeProcess serve(sandbox);
  const Load load(sandbox.storage());
  std::vector<Round> all;
  const auto quiet = [&] {
    return std::count_if(all.begin(), all.end(),
                         [](const Round& one) { return one.stolen <= quiet_percent; });
  };
  while (all.size() < most_rounds && quiet() < std::ptrdiff_t{rounds}) {
    all.push_back(measure(serve.port()));
    const Round& last = all.back();
    say(line + " round " + std::to_string(all.size()) + ": p50 " + std::to_string(last.ours50) + " p99 " +
        std::to_string(last.ours99) + " ms; livez p99 " + std::to_string(last.bare99) + " ms; stolen " +
        std::to_string(last.stolen) + " %");
  }
  const std::size_t tried = all.size();
  std::stable_sort(all.begin(), all.end(),
                   [](const Round& a, const Round& b) { return a.stolen < b.stolen; });
  all.resize(std::min(rounds, tried));
  const auto published = RelayAdmin(sandbox.storage()).find("all", "StatisticsPublisher");
  if (!published || published->position == Position{})
    throw std::runtime_error("the relay has published nothing");
  const auto middle = [&](double Round::*figure) {
    std::vector<double> values;
    for (const Round& one : all) values.push_back(one.*figure);
    return median(values);
  };
  const std::vector<Line::Extra> rounds_extra{{"rounds", static_cast<double>(all.size())},
                                              {"rounds_tried", static_cast<double>(tried)},
                                              {"stolen_percent", all.back().stolen}};
  report.print(
      {line + ".p50", middle(&Round::ours50), "ms", "livez", middle(&Round::bare50), {}, rounds_extra});
  const double p99 = middle(&Round::ours99);
  // The target is a time, not a ratio.
  Line last{line + ".p99", p99, "ms", "livez", middle(&Round::bare99), {}, rounds_extra};
  last.extra.insert(last.extra.end(),
                    {{"target", std::string("<=5 ms")},
                     {"met", p99 <= limit_ms},
                     {"requests_per_second", double{requests_per_second}},
                     {"relayed_per_second", double{appends_per_second * events_per_append}}});
  report.print(last);
}

}  // namespace postrider::bench

#endif
