// SPDX-License-Identifier: Apache-2.0
// A process that the crash test kills: logs numbered events with a mapped or a memory ring.
//
//   logger_child FOLDER LIFE mapped|memory|drain|hook|hook-beside-own|hook-second|hook-mapped|hold
//
// Notes "n LIFE" when it begins, "l KEY" for each event once log() has returned, and "d KEY THREAD REQUEST"
// for each one that the receiver, which lies in this process and fails now and then, has taken. With memory
// rings "g N" too: how many are in memory alone. A note ends with a full stop: the last one of a process that
// was killed may be cut off.
//
// Says "ready" when it logs, and "busy" after some requests.
//
// hook: memory rings, and SIGTERM and SIGINT end the logger first; with a handler of the program's own beside
// it that exits with 7; behind those of another logger. hold: has the folder until its stdin ends.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iostream>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "postrider/async_logger.hpp"
#include "support/child_main.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

/// Appends to a file in one write: it is there when the process is killed right after.
class Notes {
 public:
  explicit Notes(const std::string& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  void write(const std::string& text) const {
    if (::write(file_, text.data(), text.size()) < 0) std::abort();
    // Not more can be done in one go: who is killed in the middle leaves half a note.
  }

 private:
  int file_;
};

class NotingClient final : public EventLogClient {
 public:
  NotingClient(const Notes& notes, unsigned seed, bool steady)
      : notes_(notes), steady_(steady), random_(seed) {}
  SendResult send(std::span<const OutgoingEvent> events) override {
    {
      const std::lock_guard lock(mutex_);
      // Long bad times and good times, so that the disk and the replay have their share.
      if (left_ == 0) {
        bad_ = !steady_ && random_() % 3 == 0;
        left_ = random_() % 20;
      } else {
        --left_;
      }
      if (bad_) return {.verdict = SendVerdict::transient, .status = 503};
    }
    static std::atomic<int> threads{0};
    static std::atomic<std::uint64_t> requests{0};
    thread_local const int thread = ++threads;
    const std::uint64_t request = ++requests;  // its own: the other thread goes on counting meanwhile
    const std::string suffix = " " + std::to_string(thread) + " " + std::to_string(request) + " .\n";
    std::string lines;
    for (const OutgoingEvent& event : events) {
      // An event that comes twice must be the same one: its details say which.
      if (event.members.find("\"details\":\"" + std::string(event.key) + " ") == std::string_view::npos)
        notes_.write("wrong " + std::string(event.key) + " .\n");
      (lines += "d ").append(event.key).append(suffix);
    }
    notes_.write(lines);
    if (request == busy_after) std::cout << "busy" << std::endl;
    return {};
  }

 private:
  static constexpr std::uint64_t busy_after = 20;
  const Notes& notes_;
  const bool steady_;
  std::mutex mutex_;
  std::mt19937 random_;
  bool bad_ = false;
  std::uint64_t left_ = 5;
};

void exit_with_seven(int) {
  ::_exit(7);
}

int run(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: logger_child FOLDER LIFE "
                 "mapped|memory|drain|hook|hook-beside-own|hook-second|hook-mapped|hold\n";
    return 2;
  }
  const std::string folder = argv[1];
  const std::string life = argv[2];
  const std::string mode = argv[3];
  const bool hooks = mode.starts_with("hook");
  const Notes notes(folder + "/notes");
  notes.write("\nn " + life + " .\n");
  const auto client =
      std::make_shared<NotingClient>(notes, static_cast<unsigned>(std::stoul(life)), mode == "drain");
  LoggerOptions options;
  options.spillover_path = folder + "/spill";
  options.ring = mode == "memory" || (hooks && mode != "hook-mapped") ? RingMode::memory : RingMode::mapped;
  options.ring_bytes = 256 * 1024;
  options.max_spillover_events = 10'000'000;
  options.max_spillover_bytes = std::uint64_t{1} << 32U;
  options.batch_size = 20;
  options.max_batch_wait = 1ms;
  options.base_retry_delay = 100us;
  options.max_retry_delay = 1ms;
  options.circuit_breaker_reset = 2ms;
  options.replay_interval = 3ms;
  options.replay_batch_size = mode == "drain" ? 500 : 20;  // it may have a million of them
  options.full_policy = FullPolicy::block;
  options.block_timeout = 60s;
  options.fsync = FsyncMode::none;  // it is killed, the power stays
  options.log = [](LogLevel, std::string_view) {};
  options.on_loss = [&](const LostEvent& lost) {
    notes.write("x " + std::string(to_string(lost.reason)) + " " + std::to_string(lost.count) + " .\n");
  };
  options.handle_signals = hooks;
  if (mode == "hook-beside-own") {
    struct sigaction own {};
    own.sa_handler = exit_with_seven;
    ::sigaction(SIGTERM, &own, nullptr);
  }
  std::optional<AsyncEventLogger> first;
  if (mode == "hook-second") {
    LoggerOptions others = options;
    others.spillover_path = folder + "/others";
    first.emplace(client, others);
  }
  AsyncEventLogger logger(client, options);
  if (mode == "drain") {
    while (logger.stats().pending() > 0) {
      (void)logger.flush(10ms);
      logger.replay_soon();
    }
    logger.shutdown();
    std::cout << "drained" << std::endl;
    return 0;
  }
  if (mode == "hold") {
    std::cout << "ready" << std::endl;
    std::string line;
    while (std::getline(std::cin, line)) {
    }
    return 0;
  }
  std::atomic<std::uint64_t> number{0};
  const auto work = [&](unsigned thread) {
    EventLogEntry entry;
    for (;;) {
      const std::string key = life + "." + std::to_string(thread) + "." + std::to_string(number++);
      entry.clear();
      entry.process_name("Crash")
          .process_status(ProcessStatus::in_progress)
          .step("Step")
          .details(key + " " + std::string(100, 'x'))
          .idempotency_key(key);
      if (logger.log(entry)) {
        notes.write("l " + key + " .\n");
      } else {
        ::pause();  // shut down: until the signal has done what it does
      }
    }
  };
  std::jthread second(work, 2);
  std::jthread gauge([&] {
    while (mode == "memory") {
      // After what was in memory at some moment, at most what is logged until the next line may be added.
      const LoggerStats stats = logger.stats();
      notes.write("g " + std::to_string(stats.in_rings + stats.in_flight) + " .\n");
      std::this_thread::yield();
    }
  });
  std::cout << "ready" << std::endl;
  work(1);
  return 0;
}

}  // namespace
}  // namespace postrider::test

int main(int argc, char** argv) {
  return postrider::test::child_main(argc, argv, postrider::test::run);
}
