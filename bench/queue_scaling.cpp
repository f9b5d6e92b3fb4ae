// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <new>
#include <system_error>
#include <thread>

#include "queue.hpp"
#include "queue_sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr int rounds = 3;
constexpr std::size_t backlog = 300'000;
constexpr std::array<std::size_t, 4> process_counts{1, 2, 4, 8};

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// In memory that all processes share.
struct Counts {
  std::atomic<std::size_t> ready;
  std::atomic<bool> begin;
  std::atomic<std::size_t> settled;

  static Counts& map(int descriptor) {
    void* memory = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) fail("mmap");
    return *std::launder(static_cast<Counts*>(memory));
  }
};

/// Throws when it takes more than two minutes.
void await(const std::function<bool()>& condition, const char* what) {
  const Stopwatch watch;
  while (!condition()) {
    if (watch.seconds() > 120) throw std::runtime_error(std::string("waited in vain: ") + what);
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

/// A worker in a process of its own; ends when its input does.
class WorkerProcess {
 public:
  WorkerProcess(const std::string& url, const std::string& schema, int counter) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
    const std::string descriptor = std::to_string(counter);
    pid_ = ::fork();
    if (pid_ < 0) fail("fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[0], STDIN_FILENO);
      ::execl("/proc/self/exe", "postrider-bench", "--queue-worker", url.c_str(), schema.c_str(),
              descriptor.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[0]);
    input_ = ends[1];
  }
  WorkerProcess(WorkerProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), input_(std::exchange(other.input_, -1)) {}
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  ~WorkerProcess() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    (void)end();
  }

  /// True when it ended well.
  bool end() {
    ::close(input_);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status == 0;
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
};

double run(QueueSandbox& sandbox, std::size_t processes) {
  sandbox.clear();
  sandbox.seed(backlog);
  const int memory = ::memfd_create("postrider-bench", 0);  // the children inherit it
  if (memory < 0 || ::ftruncate(memory, sizeof(Counts)) != 0) fail("memfd_create");
  Counts& counts = Counts::map(memory);
  double rate = 0;
  {
    std::vector<WorkerProcess> workers;
    for (std::size_t i = 0; i < processes; ++i) {
      workers.emplace_back(sandbox.url(), sandbox.schema(), memory);
    }
    await([&] { return counts.ready == processes; }, "the workers are not ready");
    const Stopwatch watch;
    counts.begin = true;
    await([&] { return counts.settled >= backlog; }, "the events are not finished");
    rate = static_cast<double>(backlog) / watch.seconds();
    for (WorkerProcess& worker : workers) {
      if (!worker.end()) throw std::runtime_error("a worker process failed");
    }
  }
  ::munmap(&counts, sizeof(Counts));
  ::close(memory);
  sandbox.expect_all_logged(backlog);
  return rate;
}

}  // namespace

int queue_worker_child(const std::string& url, const std::string& schema, int counter) {
  class Metrics final : public MetricsExporter {
   public:
    explicit Metrics(Counts& counts) : counts_(counts) {}
    void observe_queue_settle(std::size_t events, Duration) override { counts_.settled += events; }

   private:
    Counts& counts_;
  };
  Counts& counts = Counts::map(counter);
  Metrics metrics(counts);
  const auto storage = open(url, {.schema = schema});
  storage->ping();
  EventQueue queue(*storage, {.metrics = &metrics});
  EventManager manager(queue);
  manager.register_handler("bench", EventType(bench_type), [](const Event&) {});
  ++counts.ready;
  await([&] { return counts.begin.load(); }, "nobody says begin");
  manager.start();
  char ignored = 0;
  while (::read(STDIN_FILENO, &ignored, 1) > 0) {
  }
  manager.stop();
  return 0;
}

void queue_scaling(Report& report, const std::string& line) {
  QueueSandbox sandbox(BackendKind::postgres, "bench_queue_scaling");
  std::array<std::vector<double>, process_counts.size()> rates;
  for (int round = 1; round <= rounds; ++round) {
    std::string text = line + " round " + std::to_string(round) + ":";
    for (std::size_t i = 0; i < process_counts.size(); ++i) {
      rates[i].push_back(run(sandbox, process_counts[i]));
      text += " " + std::to_string(static_cast<long>(rates[i].back()));
    }
    say(text);
  }
  report.print({line,
                median(rates.back()),
                "events/s by 8 processes",
                "by 1 process",
                median(rates.front()),
                Target::at_least(1.0),
                {{"by_2", median(rates[1])}, {"by_4", median(rates[2])}, {"rounds", double{rounds}}}});
}

}  // namespace postrider::bench
