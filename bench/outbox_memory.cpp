// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "bare_writer.hpp"
#include "drain_metrics.hpp"
#include "outbox.hpp"
#include "sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr std::size_t backlog = 1'000'000;
constexpr double limit_mb = 100;

/// Runs this program again and returns what it printed.
std::string output_of_child(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::vector<char*> argv;
    std::vector<std::string> texts = arguments;
    for (std::string& text : texts) argv.push_back(text.data());
    argv.push_back(nullptr);
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  char buffer[256];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    output.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the draining process failed");
  return output;
}

}  // namespace

int outbox_memory_child(const std::string& url, const std::string& schema, std::size_t rows) {
  const auto storage = open(url, {.schema = schema});
  DrainMetrics metrics;
  Outbox outbox(*storage, {.poller_batch_size = 500, .metrics = &metrics});
  outbox.on(EventType(bench_type), [](const Event&) {});
  const Stopwatch watch;
  outbox.start();
  metrics.await_flushed(rows);
  const double seconds = watch.seconds();
  outbox.stop();
  std::cout << peak_resident_mb() << " " << static_cast<double>(rows) / seconds << std::endl;
  return 0;
}

void outbox_memory(Report& report, const std::string& line) {
  Sandbox sandbox(BackendKind::sqlite, "bench_memory");
  const Stopwatch seeding;
  sandbox.seed(backlog);
  say(line + ": " + std::to_string(backlog) + " rows inserted in " + std::to_string(seeding.seconds()) +
      " s");
  // A process of its own, so that the peak is the drain's alone.
  const std::string output = output_of_child(
      {"postrider-bench", "--memory-child", sandbox.url(), sandbox.schema(), std::to_string(backlog)});
  sandbox.expect_all_done(backlog);
  std::size_t rest = 0;
  const double peak = std::stod(output, &rest);
  const double rate = std::stod(output.substr(rest));
  report.print({line,
                peak,
                "MB",
                "limit",
                limit_mb,
                Target::at_most(1.0),
                {{"rows", double{backlog}}, {"drain_rate", rate}}});
}

}  // namespace postrider::bench
