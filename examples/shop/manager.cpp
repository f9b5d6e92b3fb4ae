// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <postrider/postrider.hpp>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "node_process.hpp"
#include "shop.hpp"

namespace shop {

namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

/// Ctrl-C, a closed terminal or a pipe that nobody reads any more: leave, and tidy up.
volatile std::sig_atomic_t interrupted = 0;

/// The live table: drawn over itself on a terminal, a line every two seconds elsewhere.
class Board {
 public:
  explicit Board(const Place& place)
      : counters_(Counters::map(place)), terminal_(::isatty(STDOUT_FILENO) == 1) {
    std::printf("%5s %9s %9s %7s %4s %7s %8s %8s  %s\n", "sec", "published", "delivered", "retried", "dead",
                "pending", "events/s", "median", "what happens");
  }

  void draw(const postrider::OutboxCounts& counts, const std::string& what, bool force = false) {
    const auto now = SteadyClock::now();
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const auto delivered = counters_.delivered.load();
    const double since = std::chrono::duration<double>(now - rate_from_).count();
    if (since >= 1.0) {
      rate_ = static_cast<double>(delivered - rate_delivered_) / since;
      rate_from_ = now;
      rate_delivered_ = delivered;
    }
    if (!terminal_ && !force && now < next_line_) return;
    next_line_ = now + 2s;
    // At most 79 columns; on a terminal the line is drawn over itself.
    std::printf("%s%5.1f %9llu %9llu %7llu %4lld %7lld %8.0f %5.0f us  %.12s%s", terminal_ ? "\r" : "",
                seconds, static_cast<unsigned long long>(counters_.published.load()),
                static_cast<unsigned long long>(delivered),
                static_cast<unsigned long long>(counters_.retried.load()),
                static_cast<long long>(counts.dead), static_cast<long long>(counts.pending), rate_,
                counters_.median_latency(), what.c_str(),
                !terminal_ ? "\n"
                : force    ? "\033[K\n"
                           : "\033[K");
    if (std::fflush(stdout) != 0) interrupted = 1;
  }

 private:
  Counters& counters_;
  bool terminal_;
  SteadyClock::time_point begin_ = SteadyClock::now();
  SteadyClock::time_point next_line_ = begin_;
  SteadyClock::time_point rate_from_ = begin_;
  std::uint64_t rate_delivered_ = 0;
  double rate_ = 0.0;
};

void print(const BalanceSheet& sheet) {
  const auto line = [](const char* what, std::uint64_t count) {
    std::printf("  %-52s %10llu\n", what, static_cast<unsigned long long>(count));
  };
  std::printf("\nThe books\n");
  line("orders committed (the shop's own table)", sheet.orders);
  line("orders rolled back", sheet.cancelled);
  line("events delivered (each counted once)", sheet.delivered);
  line("dead letters, kept for replay", sheet.dead);
  line("still pending", sheet.pending);
  line("of these delivered again after a crash, same id", sheet.repeated);
  line("lost", sheet.lost);
  line("phantoms (delivered, yet never committed)", sheet.phantom);
  std::printf("\n%s\n", sheet.balanced()
                            ? "Balanced: committed = delivered + dead. Nothing lost, nothing phantom."
                            : "NOT BALANCED.");
}

/// The second word of each line, counted.
std::unordered_map<std::string, std::uint64_t> read_book(const std::filesystem::path& path) {
  std::unordered_map<std::string, std::uint64_t> orders;
  std::ifstream file(path);
  std::string id;
  std::string order;
  while (file >> id >> order) ++orders[order];
  return orders;
}

}  // namespace

bool told_to_leave() noexcept {
  return interrupted != 0;
}

BalanceSheet check_books(const Place& place) {
  auto storage = postrider::open(place.url());
  postrider::Outbox outbox{*storage};
  BalanceSheet sheet;
  const auto mails = read_book(place.mails());
  sheet.cancelled = read_book(place.cancelled()).size();
  sheet.delivered = mails.size();
  for (const auto& [order, times] : mails) sheet.repeated += times - 1;

  std::unordered_set<std::string> dead;
  std::vector<postrider::OutboxRecord> page = outbox.admin().dead_letters({}, 1000);
  while (!page.empty()) {
    for (const auto& record : page) dead.insert(record.aggregate_id);
    const postrider::OutboxRecord last = page.back();
    page = outbox.admin().dead_letters({}, 1000, &last);
  }
  const auto counts = outbox.admin().counts();
  sheet.dead = static_cast<std::uint64_t>(counts.dead);
  sheet.pending = static_cast<std::uint64_t>(counts.pending);

  auto tx = storage->begin();
  const postrider::Rows orders = tx.execute("select number from shop_order");
  sheet.orders = orders.size();
  std::uint64_t known = 0;
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const std::string& order = orders.text(i, 0);
    const bool mailed = mails.contains(order);
    known += mailed ? 1 : 0;
    if (!mailed && !dead.contains(order)) ++sheet.lost;
  }
  sheet.lost -= std::min(sheet.lost, sheet.pending);
  sheet.phantom = mails.size() - known;
  return sheet;
}

int run_manager(const Place& place, std::chrono::seconds length, const std::string& program) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, [](int) { interrupted = 1; });
  std::signal(SIGPIPE, SIG_IGN);
  std::printf("A shop runs for %lld seconds on embedded SQLite (%s).\n",
              static_cast<long long>(length.count()), place.url().c_str());
  std::printf(
      "Each order and its event commit in one transaction; one in twelve is rolled\n"
      "back; the mail server is busy at times; and in the middle the shop is killed\n"
      "with kill -9. Median: from placing an order, its commit included, to its\n"
      "listener.\n\n");
  // The tables first, so that the board has something to read.
  auto storage = postrider::open(place.url());
  storage->migrate();
  postrider::Outbox outbox{*storage};
  Board board(place);

  const auto show_until = [&](SteadyClock::time_point end, const char* what,
                              NodeProcess* until_ended = nullptr) {
    while (interrupted == 0 && SteadyClock::now() < end &&
           !(until_ended != nullptr && until_ended->ended())) {
      board.draw(outbox.admin().counts(), what);
      std::this_thread::sleep_for(100ms);
    }
  };

  const auto begin = SteadyClock::now();
  {
    NodeProcess node(program, "--node", place);
    show_until(begin + length * 2 / 5, "open");
    if (interrupted != 0) return interrupted_code;
    node.end(SIGKILL);
    board.draw(outbox.admin().counts(), "kill -9", true);
  }
  {
    NodeProcess node(program, "--node", place);
    show_until(begin + length * 9 / 10, "open again");
    if (interrupted != 0) return interrupted_code;
    node.end(SIGTERM);
    board.draw(outbox.admin().counts(), "closing time", true);
  }
  {
    NodeProcess node(program, "--deliver", place);
    show_until(SteadyClock::now() + 60s, "the rest", &node);
    board.draw(outbox.admin().counts(), "all done", true);
  }

  if (interrupted != 0) return interrupted_code;
  const BalanceSheet sheet = check_books(place);
  print(sheet);
  return sheet.balanced() ? 0 : 1;
}

}  // namespace shop
