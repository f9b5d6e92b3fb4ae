// SPDX-License-Identifier: Apache-2.0
#include "app/cli/bench_measures.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "postrider/detail/sync.hpp"
#include "postrider/error.hpp"
#include "postrider/event_manager.hpp"
#include "postrider/event_store.hpp"
#include "postrider/outbox.hpp"

namespace postrider::cli {
namespace {

using namespace std::chrono_literals;

/// Of about the size that events of applications have.
const std::string payload = R"({"order":4711,"text":")" + std::string(170, 'x') + R"("})";
/// What is published must arrive: on a database that needs longer for it, the figures would say nothing.
constexpr Duration measure_patience = 60s;
constexpr auto between_looks = 20ms;

/// Latencies of all threads. Thread-safe.
class Latencies {
 public:
  void add(Duration one) {
    const MutexLock lock(mutex_);
    all_.push_back(std::chrono::duration<float, std::milli>(one).count());
  }
  [[nodiscard]] std::int64_t count() const {
    const MutexLock lock(mutex_);
    return static_cast<std::int64_t>(all_.size());
  }
  /// Nearest rank; 0 without any.
  [[nodiscard]] double percentile(double part) {
    const MutexLock lock(mutex_);
    if (all_.empty()) return 0;
    const auto rank = std::lround(part * static_cast<double>(all_.size() - 1));
    const auto at = all_.begin() + rank;
    std::nth_element(all_.begin(), at, all_.end());
    return static_cast<double>(*at);
  }

 private:
  mutable Mutex mutex_;
  std::vector<float> all_ POSTRIDER_GUARDED_BY(mutex_);
};

/// Threads that call `one` until the limits are reached.
class Publishers {
 public:
  Publishers(const BenchLimits& limits, std::function<void()> one)
      : limits_(limits), one_(std::move(one)), end_(Clock::system().steady_now() + limits.time) {
    for (std::size_t i = 0; i < limits.threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~Publishers() { stop_ = true; }  // then the threads join
  Publishers(const Publishers&) = delete;
  Publishers& operator=(const Publishers&) = delete;

  void stop() noexcept { stop_ = true; }
  [[nodiscard]] bool ended() const noexcept { return running_ == 0; }
  [[nodiscard]] std::int64_t published() const noexcept { return published_; }
  /// Throws what a thread has failed of.
  void check() {
    const MutexLock lock(mutex_);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  void run() noexcept {
    try {
      while (!stop_ && Clock::system().steady_now() < end_) {
        if (limits_.events > 0 && begun_.fetch_add(1) >= limits_.events) break;
        one_();
        ++published_;
      }
    } catch (...) {
      const MutexLock lock(mutex_);
      failure_ = std::current_exception();
      stop_ = true;
    }
    --running_;
  }

  const BenchLimits& limits_;
  const std::function<void()> one_;
  const SteadyPoint end_;
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> begun_{0};
  std::atomic<std::int64_t> published_{0};
  std::atomic<std::size_t> running_{limits_.threads};
  Mutex mutex_;
  std::exception_ptr failure_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;  // last: they use the above
};

/// Publishes by `one` and waits until all that was published has arrived.
BenchResult measure(std::string name, const BenchLimits& limits, Latencies& latencies,
                    std::function<void()> one) {
  const SteadyPoint begin = Clock::system().steady_now();
  Publishers publishers(limits, std::move(one));
  SteadyPoint give_up = begin + limits.time + measure_patience;
  for (;;) {
    publishers.check();
    if (publishers.ended() && latencies.count() >= publishers.published()) break;
    if (!limits.go_on(latencies.count())) publishers.stop();
    if (Clock::system().steady_now() > give_up) {
      throw Error(ErrorCode::timeout, "cannot measure " + name,
                  "only " + std::to_string(latencies.count()) + " of " +
                      std::to_string(publishers.published()) + " events have arrived within a minute",
                  "postrider doctor looks for what is wrong with the database");
    }
    std::this_thread::sleep_for(between_looks);
  }
  const std::chrono::duration<double> time = Clock::system().steady_now() - begin;
  return {.name = std::move(name),
          .events = latencies.count(),
          .seconds = time.count(),
          .p50_ms = latencies.percentile(0.50),
          .p99_ms = latencies.percentile(0.99)};
}

Event new_event() {
  return Event::json("PostriderBench", payload);
}

Duration age_of(const Event& event) {
  return std::chrono::duration_cast<Duration>(Clock::system().now() - event.occurred_at());
}

LogCallback quiet() {
  return [](LogLevel, std::string_view) {};
}

}  // namespace

BenchResult measure_outbox(Storage& storage, const BenchLimits& limits) {
  Latencies latencies;
  Outbox outbox{storage, {.log = quiet()}};
  outbox.on("PostriderBench", [&](const Event& event) { latencies.add(age_of(event)); });
  outbox.start();
  BenchResult result = measure("outbox: publish to delivered", limits, latencies, [&] {
    Transaction tx = storage.begin();
    outbox.publish(tx, new_event());
    tx.commit();
  });
  outbox.stop();
  return result;
}

BenchResult measure_queue(Storage& storage, const BenchLimits& limits) {
  Latencies latencies;
  EventQueue queue{storage, {.log = quiet()}};
  EventManager manager{queue};
  manager.register_handler("bench", "PostriderBench",
                           [&](const Event& event) { latencies.add(age_of(event)); });
  manager.start();
  BenchResult result =
      measure("queue: publish to handled", limits, latencies, [&] { queue.publish(new_event()); });
  manager.stop();
  return result;
}

BenchResult measure_store(Storage& storage, const BenchLimits& limits) {
  Latencies latencies;
  EventStore store{storage, {.log = quiet()}};
  return measure("event store: append", limits, latencies, [&] {
    const SteadyPoint begin = Clock::system().steady_now();
    store.append({AppendEvent::builder("PostriderBench").tag("bench", "1").data(payload)});
    latencies.add(std::chrono::duration_cast<Duration>(Clock::system().steady_now() - begin));
  });
}

}  // namespace postrider::cli
