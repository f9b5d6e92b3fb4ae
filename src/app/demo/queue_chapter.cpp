// SPDX-License-Identifier: Apache-2.0
// The second chapter: the durable queue, its log, and a projection of it.
#include <map>
#include <optional>
#include <vector>

#include "app/demo/actor.hpp"
#include "app/demo/paid_order.hpp"
#include "app/demo/queue_worker.hpp"
#include "app/demo/sales.hpp"
#include "app/demo/stage.hpp"
#include "postrider/event_log.hpp"
#include "postrider/open.hpp"
#include "postrider/projection.hpp"
#include "postrider/queue_admin.hpp"

namespace postrider::demo {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr int order_count = 600;

/// What the log says, and whether it is what happened.
struct LogSummary {
  std::uint64_t completed = 0;
  std::uint64_t with_errors = 0;
  std::uint64_t failed = 0;
  std::uint64_t tried_again = 0;
  std::map<int, int> entries_of_order{};
  std::vector<LogEntry> remarkable{};  // the crash and the hopeless one
};

LogSummary read_log(Storage& storage) {
  EventLog log{storage};
  LogSummary summary;
  LogSeq at{};
  for (;;) {
    const LogPage page = log.read(at, 1000);
    for (const LogEntry& entry : page.entries) {
      if (entry.status == QueueStatus::completed) ++summary.completed;
      if (entry.status == QueueStatus::completed_with_errors) ++summary.with_errors;
      if (entry.status == QueueStatus::failed) ++summary.failed;
      if (entry.attempts > 1) ++summary.tried_again;
      const auto order = EventCodec<PaidOrder>::from_json(entry.event->payload());
      ++summary.entries_of_order[order.number];
      if (order.number == crashing_order || order.number == hopeless_order)
        summary.remarkable.push_back(entry);
    }
    if (page.scanned_to == at) return summary;
    at = page.scanned_to;
  }
}

void print(const Stage& stage, const LogSummary& summary) {
  const auto line = [&](const char* what, std::uint64_t count) {
    std::fprintf(stage.out(), "  %-52s %10llu\n", what, static_cast<unsigned long long>(count));
  };
  std::fprintf(stage.out(), "\nThe event log\n");
  line("COMPLETED", summary.completed);
  line("COMPLETED_WITH_ERRORS", summary.with_errors);
  line("FAILED", summary.failed);
  line("needed more than one attempt", summary.tried_again);
  for (const LogEntry& entry : summary.remarkable) {
    const auto order = EventCodec<PaidOrder>::from_json(entry.event->payload());
    std::fprintf(stage.out(), "  order %d: %d attempt%s, %d crash%s\n", order.number, entry.attempts,
                 entry.attempts == 1 ? "" : "s", entry.crashes, entry.crashes == 1 ? "" : "es");
    for (const HandlerResult& result : entry.results) {
      std::fprintf(stage.out(), "    %-8s %s%s%.40s\n", result.handler.c_str(),
                   std::string(to_string(result.verdict)).c_str(), result.error.empty() ? "" : ": ",
                   result.error.c_str());
    }
  }
}

/// The view that the projection keeps: how many of each item were sold.
std::uint64_t print_sales(const Stage& stage, Storage& storage) {
  Transaction tx = storage.begin();
  const Rows rows = tx.execute("select item, sold from shop_sales order by item");
  std::uint64_t total = 0;
  std::fprintf(stage.out(), "\nThe projection \"sales\", made of the log\n");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::fprintf(stage.out(), "  %-52s %10lld\n", rows.text(i, 0).c_str(),
                 static_cast<long long>(rows.integer(i, 1)));
    total += static_cast<std::uint64_t>(rows.integer(i, 1));
  }
  return total;
}

void publish_orders(Storage& storage) {
  static constexpr const char* items[] = {"envelope", "postcard", "stamp"};
  EventQueue queue{storage, queue_options()};
  std::vector<Event> events;
  for (int number = 1; number <= order_count; ++number) {
    events.push_back(to_event(PaidOrder{number, items[number % 3]}));
  }
  queue.publish(events);
}

/// Starts workers until nothing is left to do; a line a second. Returns how many of them died.
int work_off(Stage& stage, Storage& storage) {
  QueueAdmin admin{storage};
  const auto begin = SteadyClock::now();
  auto next_line = begin;
  int deaths = 0;
  const char* what = "working";
  std::fprintf(stage.out(), "%5s %8s %9s %9s %8s %11s  %s\n", "sec", "waiting", "delayed", "at work", "done",
               "quarantined", "what happens");
  std::optional<Actor> worker;
  worker.emplace(stage, "worker");
  for (;;) {
    const QueueCounts counts = admin.counts();
    const auto left = counts.pending + counts.delayed + counts.processing;
    const auto now = SteadyClock::now();
    const bool died = worker->ended();
    if (died) {
      ++deaths;
      what = "the worker died: abort()";
    }
    const bool over = left == 0 || now - begin > 60s || stage.left();
    if (over) what = left == 0 ? "all done" : "not done";
    if (stage.terminal() || died || over || now >= next_line) {
      next_line = now + 1s;
      std::fprintf(stage.out(), "%s%5.1f %8lld %9lld %9lld %8lld %11lld  %s%s%s",
                   stage.terminal() ? "\r" : "", std::chrono::duration<double>(now - begin).count(),
                   static_cast<long long>(counts.pending), static_cast<long long>(counts.delayed),
                   static_cast<long long>(counts.processing),
                   static_cast<long long>(order_count - left - counts.quarantined),
                   static_cast<long long>(counts.quarantined), what, stage.terminal() ? "\033[K" : "",
                   stage.terminal() && !died && !over ? "" : "\n");
    }
    if (over) break;
    if (died) {
      worker.emplace(stage, "worker");
      what = "another worker";
    }
    stage.pause(50ms);
  }
  worker->end(SIGTERM);
  return deaths;
}

}  // namespace

Result play_queue(Stage& stage) {
  std::fprintf(
      stage.out(),
      "\nQueue: %d paid orders, each for three handlers. \"invoice\" writes its row and its success\n"
      "in one transaction, \"mail\" meets a busy server at times, \"stock\" calls abort() on order %d,\n"
      "once, and on order %d whenever it comes, until that is put into quarantine.\n\n",
      order_count, crashing_order, poisonous_order);
  const std::unique_ptr<Storage> storage = open(stage.place().url());
  {
    Transaction tx = storage->begin();
    tx.execute("create table shop_invoice (number integer not null)");
    tx.execute("create table shop_sales (item text primary key, sold integer not null)");
    tx.commit();
  }
  publish_orders(*storage);
  ProjectionRunner projections{*storage, {.log = queue_options().log}};
  add_sales(projections);
  projections.start();
  const int deaths = work_off(stage, *storage);
  if (stage.left()) return {};
  const bool caught_up = projections.admin().wait_until("sales", EventLog(*storage).head(), 10s);
  projections.stop();

  const LogSummary summary = read_log(*storage);
  print(stage, summary);
  const std::uint64_t sold = print_sales(stage, *storage);
  Transaction tx = storage->begin();
  const Rows invoices = tx.execute("select count(*), count(distinct number) from shop_invoice");
  const std::int64_t quarantined = QueueAdmin(*storage).counts().quarantined;

  constexpr int finished = order_count - 1;
  bool good = deaths == 1 + queue_options().max_crashes && quarantined == 1 && caught_up &&
              sold == finished && summary.failed == 0 && summary.with_errors == 1 &&
              summary.tried_again > 0 && summary.entries_of_order.size() == finished &&
              invoices.integer(0, 1) >= finished && invoices.integer(0, 0) == invoices.integer(0, 1);
  for (const auto& [order, entries] : summary.entries_of_order) good = good && entries == 1;
  return {.good = good,
          .story = std::to_string(summary.entries_of_order.size()) +
                   " orders once in the log, with one invoice; " + std::to_string(quarantined) +
                   " in quarantine, " + std::to_string(deaths) + " workers died",
          .figures = {{"published", order_count},
                      {"completed", summary.completed},
                      {"withErrors", summary.with_errors},
                      {"failed", summary.failed},
                      {"triedAgain", summary.tried_again},
                      {"quarantined", quarantined},
                      {"deadWorkers", deaths},
                      {"invoices", invoices.integer(0, 0)},
                      {"projected", sold}}};
}

}  // namespace postrider::demo
