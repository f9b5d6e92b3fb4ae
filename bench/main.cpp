// SPDX-License-Identifier: Apache-2.0
// postrider-bench [--list] [PREFIX...]: JSON lines on stdout, everything else on stderr. See
// docs/benchmarks.md.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>

#include "eventlog.hpp"
#include "logger.hpp"
#include "outbox.hpp"
#include "queue.hpp"
#include "relay.hpp"
#include "serve.hpp"
#include "stream.hpp"

namespace {

using namespace postrider;
using namespace postrider::bench;

std::vector<Bench> all_benches() {
  std::vector<Bench> benches;
  const auto one = [&](const std::string& line, std::function<void(Report&, const std::string&)> run) {
    benches.push_back({{line}, [line, run](Report& report) { run(report, line); }});
  };
  const auto cycle = [&](const std::string& line, BackendKind kind, CycleSetting setting) {
    one(line, [=](Report& report, const std::string& name) { outbox_cycle(report, kind, name, setting); });
  };
  const auto publish1 = [&](const std::string& line, int threads, bool delivered) {
    one(line,
        [=](Report& report, const std::string& name) { outbox_publish1(report, threads, delivered, name); });
  };
  const auto latency = [&](const std::string& line, BackendKind kind) {
    benches.push_back(
        {{line + ".p50", line + ".p99"}, [=](Report& report) { outbox_hot_latency(report, kind, line); }});
  };
  const auto backlog = [&](const std::string& line, BackendKind kind) {
    one(line, [=](Report& report, const std::string& name) { outbox_backlog(report, kind, name); });
  };
  const auto ordered = [&](const std::string& line, BackendKind kind) {
    one(line, [=](Report& report, const std::string& name) { outbox_ordered_retries(report, kind, name); });
  };
  const auto drain = [&](const std::string& line, BackendKind kind) {
    one(line, [=](Report& report, const std::string& name) { queue_drain(report, kind, name); });
  };

  cycle("outbox.postgres.cycle", BackendKind::postgres, {Target::at_least(0.70)});
  cycle("outbox.postgres.cycle_default", BackendKind::postgres,
        {.hot_queue_capacity = OutboxOptions{}.hot_queue_capacity});
  publish1("outbox.postgres.publish1.c1", 1, false);
  publish1("outbox.postgres.publish1.c16", 16, false);
  publish1("outbox.postgres.publish1_delivered.c1", 1, true);
  publish1("outbox.postgres.publish1_delivered.c16", 16, true);
  cycle("outbox.sqlite.cycle", BackendKind::sqlite, {Target::at_least(0.70)});
  cycle("outbox.mariadb.cycle", BackendKind::mariadb, {Target::at_least(0.60)});
  latency("outbox.hot_latency", BackendKind::sqlite);
  latency("outbox.hot_latency.postgres", BackendKind::postgres);
  backlog("outbox.backlog.postgres", BackendKind::postgres);
  backlog("outbox.backlog.sqlite", BackendKind::sqlite);
  backlog("outbox.backlog.mariadb", BackendKind::mariadb);
  ordered("outbox.ordered_retries.postgres", BackendKind::postgres);
  ordered("outbox.ordered_retries.sqlite", BackendKind::sqlite);
  ordered("outbox.ordered_retries.mariadb", BackendKind::mariadb);
  one("outbox.memory", [](Report& report, const std::string& name) { outbox_memory(report, name); });
  drain("queue.postgres.drain", BackendKind::postgres);
  drain("queue.sqlite.drain", BackendKind::sqlite);
  drain("queue.mariadb.drain", BackendKind::mariadb);
  one("queue.postgres.publish", queue_publish);
  benches.push_back({{"queue.postgres.latency.same.p99", "queue.postgres.latency.other.p99"},
                     [](Report& report) { queue_latency(report, "queue.postgres.latency"); }});
  one("queue.postgres.held_xmin", queue_held_xmin);
  one("queue.scaling", queue_scaling);
  for (const auto& [line, kind] : {std::pair{"stream.postgres.append_if", BackendKind::postgres},
                                   std::pair{"stream.sqlite.append_if", BackendKind::sqlite}}) {
    const std::string name = line;
    benches.push_back({{name + ".c1", name + ".c16", name + ".c256"},
                       [name, kind = kind](Report& report) { stream_append_if(report, kind, name); }});
  }
  one("stream.postgres.append_batch", stream_append_batch);
  one("stream.postgres.flat", stream_flat);
  one("relay.postgres.throughput", relay_throughput);
  one("relay.postgres.shared_reads", relay_shared_reads);
  benches.push_back({{"relay.pairs.threads", "relay.pairs.cpu", "relay.pairs.memory"},
                     [](Report& report) { relay_pairs(report, "relay.pairs"); }});
  one("relay.latency.p99", relay_latency);
  one("relay.kafka", relay_kafka);
  one("eventlog.api", eventlog_api);
  for (const auto& [line, kind] : {std::pair{"api.read.sqlite", BackendKind::sqlite},
                                   std::pair{"api.read.postgres", BackendKind::postgres}}) {
    const std::string name = line;
    benches.push_back({{name + ".p50", name + ".p99"},
                       [name, kind = kind](Report& report) { api_read(report, kind, name); }});
  }
  benches.push_back(
      {{"serve.idle.cpu", "serve.idle.memory"}, [](Report& report) { serve_idle(report, "serve.idle"); }});
  one("serve.start", serve_start);
  one("serve.size", serve_size);
  for (const bool mapped : {false, true}) {
    for (const int threads : {1, 2, 4}) {
      const std::string line =
          std::string("logger.call.") + (mapped ? "mapped" : "memory") + ".t" + std::to_string(threads);
      benches.push_back({{line + ".p50", line + ".p99"},
                         [=](Report& report) { logger_call(report, line, mapped, threads); }});
    }
  }
  one("logger.spill.interval",
      [](Report& report, const std::string& name) { logger_spill(report, name, false); });
  one("logger.spill.group",
      [](Report& report, const std::string& name) { logger_spill(report, name, true); });
  one("logger.replay", logger_replay);
  one("logger.replay_api", logger_replay_api);
  benches.push_back({{"logger.backlog.start.1mb", "logger.backlog.start.4gb", "logger.backlog.memory"},
                     [](Report& report) { logger_backlog(report, "logger.backlog"); }});
  return benches;
}

bool wanted(const Bench& bench, const Report& report) {
  return std::any_of(bench.lines.begin(), bench.lines.end(),
                     [&](const auto& line) { return report.wanted(line); });
}

/// The lines whose names begin with one of the prefixes; all, when there are none. A prefix that is a line's
/// whole name means that line alone: `…c1` does not mean `…c16`.
std::set<std::string, std::less<>> choose(const std::vector<Bench>& benches,
                                          const std::vector<std::string>& prefixes) {
  std::set<std::string, std::less<>> all;
  for (const Bench& bench : benches) all.insert(bench.lines.begin(), bench.lines.end());
  if (prefixes.empty()) return all;
  std::set<std::string, std::less<>> chosen;
  for (const std::string& prefix : prefixes) {
    const bool whole = all.contains(prefix);
    for (const std::string& line : all) {
      if (whole ? line == prefix : line.starts_with(prefix)) chosen.insert(line);
    }
  }
  return chosen;
}

/// Returns whether the benchmark could be run.
bool run(const Bench& bench, Report& report) {
  const std::string& name = bench.lines.front();
  const Stopwatch watch;
  try {
    bench.run(report);
    say(name + ": took " + std::to_string(static_cast<int>(watch.seconds())) + " s");
    return true;
  } catch (const Unavailable& error) {
    say("*** " + name + ": NOT RUN: " + error.what());
  } catch (const std::exception& error) {
    say("*** " + name + ": FAILED: " + error.what());
  }
  return false;
}

int bench_main(const std::vector<std::string>& arguments) {
  if (arguments.size() == 4 && arguments[0] == "--memory-child") {
    return outbox_memory_child(arguments[1], arguments[2], std::stoull(arguments[3]));
  }
  if (arguments.size() == 4 && arguments[0] == "--queue-worker") {
    return queue_worker_child(arguments[1], arguments[2], std::stoi(arguments[3]));
  }
  if (arguments.size() == 3 && arguments[0] == "--relay-pairs") {
    return relay_pairs_child(arguments[1], arguments[2]);
  }
  if (arguments.size() == 3 && arguments[0] == "--logger-backlog") {
    return logger_backlog_child(arguments[1], arguments[2] == "replay");
  }
  std::vector<std::string> prefixes;
  bool list = false;
  for (const std::string& argument : arguments) {
    if (argument == "--list") {
      list = true;
    } else if (argument.starts_with("-")) {
      std::cerr << "usage: postrider-bench [--list] [PREFIX...]\n";
      return argument == "--help" ? 0 : 2;
    } else {
      prefixes.push_back(argument);
    }
  }

  const std::vector<Bench> benches = all_benches();
  const auto chosen = choose(benches, prefixes);
  if (chosen.empty()) {
    std::cerr << "postrider-bench: nothing has such a name. Hint: postrider-bench --list\n";
    return 2;
  }
  Report report(chosen);
  bool all_ran = true;
  for (const Bench& bench : benches) {
    if (!wanted(bench, report)) continue;
    if (list) {
      for (const std::string& line : bench.lines) {
        if (report.wanted(line)) std::cout << line << "\n";
      }
    } else if (!run(bench, report)) {
      all_ran = false;
    }
  }
  if (!all_ran) std::cerr << "postrider-bench: not everything could be measured, see *** above\n";
  return all_ran ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return bench_main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "postrider-bench: " << error.what() << "\n";
    return 1;
  }
}
