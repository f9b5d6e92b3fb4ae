// SPDX-License-Identifier: Apache-2.0
// The second chapter: the durable queue, its log, and a projection of it.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <postrider/postrider.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "node_process.hpp"
#include "shop.hpp"

namespace shop {

namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr int order_count = 600;
constexpr int crashing_order = 250;   // takes its worker down, once
constexpr int hopeless_order = 13;    // nobody lives there
constexpr int every_which_waits = 7;  // of these the first mail fails

struct PaidOrder {
  int number = 0;
  std::string item;
};

}  // namespace

}  // namespace shop

/// How the struct becomes an event and back; a real shop uses its JSON library.
template <>
struct postrider::EventCodec<shop::PaidOrder> {
  static constexpr std::string_view type = "OrderPaid";
  static std::string to_json(const shop::PaidOrder& order) {
    return R"({"order":)" + std::to_string(order.number) + R"(,"item":")" + order.item + R"("})";
  }
  static shop::PaidOrder from_json(std::string_view json) {
    int number = 0;
    char item[32];
    if (std::sscanf(std::string(json).c_str(), R"({"order":%d,"item":"%31[a-z]"})", &number, item) != 2) {
      throw std::invalid_argument("not an order");
    }
    return {number, item};
  }
};

namespace shop {

namespace {

std::atomic<bool> closing = false;

postrider::QueueOptions queue_options() {
  // The board tells it all. A dead worker's orders are free after two seconds.
  return {.abandoned_timeout = 2s, .log = [](postrider::LogLevel, std::string_view) {}};
}

/// Its row and its success commit together: one invoice for each order, whatever crashes.
struct InvoiceHandler {
  static constexpr std::string_view id = "invoice";
  postrider::Storage& storage;

  void handle(const PaidOrder& order, postrider::HandlerContext& context) const {
    auto tx = storage.begin();
    tx.execute("insert into shop_invoice (number) values (?)", order.number);
    context.complete(tx);
    tx.commit();
  }
};

postrider::EventHandledResult send_mail(const PaidOrder& order, postrider::HandlerContext& context) {
  if (order.number == hopeless_order) {
    return postrider::EventHandledResult::unrecoverable_error("the address does not exist");
  }
  if (order.number % every_which_waits == 0 && context.failed() == postrider::Attempt{0}) {
    throw std::runtime_error("the mail server is busy");  // the same as returning a transient error
  }
  return postrider::EventHandledResult::success();
}

void take_from_stock(const PaidOrder& order, postrider::HandlerContext& context) {
  if (order.number == crashing_order && context.crashes() == 0) std::abort();
  std::this_thread::sleep_for(5ms);  // the way to the shelf
}

}  // namespace

int run_queue_worker(const Place& place) {
  std::signal(SIGTERM, [](int) { closing = true; });
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  auto storage = postrider::open(place.url());
  postrider::EventQueue queue{*storage, queue_options()};
  postrider::EventManager manager{queue, {.batch_size = 20, .retry_base_delay = 200ms}};
  manager.register_handler(InvoiceHandler{*storage});
  manager.register_handler<PaidOrder>("mail", send_mail);
  manager.register_handler<PaidOrder>("stock", take_from_stock);
  manager.start();
  while (!closing) std::this_thread::sleep_for(20ms);
  manager.stop();
  return 0;
}

namespace {

/// What the log says, and whether it is what happened.
struct LogSummary {
  std::uint64_t completed = 0;
  std::uint64_t with_errors = 0;
  std::uint64_t failed = 0;
  std::uint64_t tried_again = 0;
  std::map<int, int> entries_of_order;
  std::vector<postrider::LogEntry> remarkable;  // the crash and the hopeless one
};

LogSummary read_log(postrider::Storage& storage) {
  postrider::EventLog log{storage};
  LogSummary summary;
  postrider::LogSeq at{};
  for (;;) {
    const postrider::LogPage page = log.read(at, 1000);
    for (const postrider::LogEntry& entry : page.entries) {
      if (entry.status == postrider::QueueStatus::completed) ++summary.completed;
      if (entry.status == postrider::QueueStatus::completed_with_errors) ++summary.with_errors;
      if (entry.status == postrider::QueueStatus::failed) ++summary.failed;
      if (entry.attempts > 1) ++summary.tried_again;
      const auto order = postrider::EventCodec<PaidOrder>::from_json(entry.event->payload());
      ++summary.entries_of_order[order.number];
      if (order.number == crashing_order || order.number == hopeless_order)
        summary.remarkable.push_back(entry);
    }
    if (page.scanned_to == at) return summary;
    at = page.scanned_to;
  }
}

void print(const LogSummary& summary) {
  const auto line = [](const char* what, std::uint64_t count) {
    std::printf("  %-52s %10llu\n", what, static_cast<unsigned long long>(count));
  };
  std::printf("\nThe event log\n");
  line("COMPLETED", summary.completed);
  line("COMPLETED_WITH_ERRORS", summary.with_errors);
  line("FAILED", summary.failed);
  line("needed more than one attempt", summary.tried_again);
  for (const postrider::LogEntry& entry : summary.remarkable) {
    const auto order = postrider::EventCodec<PaidOrder>::from_json(entry.event->payload());
    std::printf("  order %d: %d attempt%s, %d crash%s\n", order.number, entry.attempts,
                entry.attempts == 1 ? "" : "s", entry.crashes, entry.crashes == 1 ? "" : "es");
    for (const postrider::HandlerResult& result : entry.results) {
      std::printf("    %-8s %s%s%.40s\n", result.handler.c_str(),
                  std::string(to_string(result.verdict)).c_str(), result.error.empty() ? "" : ": ",
                  result.error.c_str());
    }
  }
}

/// The view that the projection keeps: how many of each item were sold.
std::uint64_t print_sales(postrider::Storage& storage) {
  auto tx = storage.begin();
  const postrider::Rows rows = tx.execute("select item, sold from shop_sales order by item");
  std::uint64_t total = 0;
  std::printf("\nThe projection \"sales\", made of the log\n");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::printf("  %-52s %10lld\n", rows.text(i, 0).c_str(), static_cast<long long>(rows.integer(i, 1)));
    total += static_cast<std::uint64_t>(rows.integer(i, 1));
  }
  return total;
}

void publish_orders(postrider::Storage& storage) {
  static constexpr const char* items[] = {"envelope", "postcard", "stamp"};
  postrider::EventQueue queue{storage, queue_options()};
  std::vector<postrider::Event> events;
  for (int number = 1; number <= order_count; ++number) {
    events.push_back(postrider::to_event(PaidOrder{number, items[number % 3]}));
  }
  queue.publish(events);
}

/// Starts workers until nothing is left to do; a line a second. Returns how many of them died.
int work_off(postrider::Storage& storage, const Place& place, const std::string& program) {
  postrider::QueueAdmin admin{storage};
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const auto begin = SteadyClock::now();
  auto next_line = begin;
  int deaths = 0;
  std::string what = "working";
  std::printf("%5s %8s %9s %9s %8s  %s\n", "sec", "waiting", "retrying", "at work", "done", "what happens");
  std::optional<NodeProcess> worker;
  worker.emplace(program, "--worker", place);
  for (;;) {
    const postrider::QueueCounts counts = admin.counts();
    const auto left = counts.pending + counts.delayed + counts.processing + counts.quarantined;
    const auto now = SteadyClock::now();
    const bool died = worker->ended();
    if (died) {
      ++deaths;
      what = "the worker died: abort()";
    }
    const bool over = left == 0 || now - begin > 30s || told_to_leave();
    if (over) what = left == 0 ? "all done" : "not done";
    if (terminal || died || over || now >= next_line) {
      next_line = now + 1s;
      std::printf("%s%5.1f %8lld %9lld %9lld %8lld  %s%s", terminal ? "\r" : "",
                  std::chrono::duration<double>(now - begin).count(), static_cast<long long>(counts.pending),
                  static_cast<long long>(counts.delayed), static_cast<long long>(counts.processing),
                  static_cast<long long>(order_count - left), what.c_str(),
                  terminal && !died && !over ? "\033[K" : "\n");
      std::fflush(stdout);
    }
    if (over) break;
    if (died) {
      worker.emplace(program, "--worker", place);
      what = "another worker";
    }
    std::this_thread::sleep_for(50ms);
  }
  worker->end(SIGTERM);
  return deaths;
}

}  // namespace

int run_queue_chapter(const Place& place, const std::string& program) {
  std::printf(
      "\n%d paid orders go through the queue, each to three handlers: \"invoice\" writes\n"
      "its row and its success in one transaction, \"mail\" meets a busy server at\n"
      "times, \"stock\" calls abort() on order %d and takes its process down, once.\n\n",
      order_count, crashing_order);
  auto storage = postrider::open(place.url());
  {
    auto tx = storage->begin();
    tx.execute("create table shop_invoice (number integer not null)");
    tx.execute("create table shop_sales (item text primary key, sold integer not null)");
    tx.commit();
  }
  publish_orders(*storage);

  postrider::ProjectionRunner projections{*storage, {.log = queue_options().log}};
  projections.add({.name = "sales", .types = {std::string(postrider::EventCodec<PaidOrder>::type)}},
                  [](postrider::Tx& tx, const postrider::LogEntry& entry) {
                    const auto order = postrider::EventCodec<PaidOrder>::from_json(entry.event->payload());
                    tx.execute(
                        "insert into shop_sales (item, sold) values (?, 1) "
                        "on conflict (item) do update set sold = sold + 1",
                        order.item);
                  });
  projections.start();
  const int deaths = work_off(*storage, place, program);
  if (told_to_leave()) return interrupted_code;
  const bool caught_up = projections.admin().wait_until("sales", postrider::EventLog(*storage).head(), 10s);
  projections.stop();

  const LogSummary summary = read_log(*storage);
  print(summary);
  const std::uint64_t sold = print_sales(*storage);
  auto tx = storage->begin();
  const auto invoices = tx.execute("select count(*), count(distinct number) from shop_invoice");

  bool good = deaths == 1 && caught_up && sold == order_count && summary.failed == 0 &&
              summary.with_errors == 1 && summary.entries_of_order.size() == order_count &&
              invoices.integer(0, 0) == order_count && invoices.integer(0, 1) == order_count;
  for (const auto& [order, entries] : summary.entries_of_order) good = good && entries == 1;
  std::printf("\n%s\n", good ? "Each order is in the log once, has one invoice, and is counted once."
                             : "NOT AS IT SHOULD BE.");
  return good ? 0 : 1;
}

}  // namespace shop
