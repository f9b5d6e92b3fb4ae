// SPDX-License-Identifier: Apache-2.0
// The third chapter: wallets in the event store, transfers under contention, and a relay with two publishers.
#include <algorithm>
#include <fstream>
#include <thread>
#include <variant>
#include <vector>

#include "app/demo/backstage.hpp"
#include "app/demo/book.hpp"
#include "app/demo/stage.hpp"
#include "app/demo/wallets.hpp"
#include "postrider/open.hpp"
#include "postrider/relay_admin.hpp"

namespace postrider::demo {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr int tellers = 4;
constexpr int transfers_each = 60;

void trade(const Stage& stage, EventStore& store, Tally& tally) {
  std::vector<std::thread> threads;
  threads.reserve(tellers);
  for (int teller = 0; teller < tellers; ++teller) {
    threads.emplace_back([&, teller] {
      for (int i = 0; i < transfers_each && !stage.left(); ++i) {
        const int from = (teller + i) % wallets;
        transfer(store, from, (from + 1 + i % (wallets - 1)) % wallets, 1 + (i * 7) % 40, tally);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// One decides, another is quicker: the append on condition is refused. True when it was.
bool show_conflict(const Stage& stage, EventStore& store, Tally& tally) {
  const auto seen = store.project(balances_of({wallet(0)}));
  transfer(store, 0, 1, 1, tally);
  const AppendResult late = store.append_if({AppendEvent::builder("MoneyTransferred")
                                                 .tag("wallet_id", wallet(0))
                                                 .metadata("from", wallet(0))
                                                 .metadata("to", wallet(2))
                                                 .data("1")},
                                            seen.condition());
  const auto* const conflict = std::get_if<Conflict>(&late);
  if (conflict == nullptr) return false;
  std::fprintf(
      stage.out(),
      "  a decision on what was read before somebody else's transfer: a conflict, nothing appended\n");
  return true;
}

void print(const Stage& stage, const RelayAdmin& admin, const char* what) {
  std::fprintf(stage.out(), "\n%s\n", what);
  for (const PairStatus& pair : admin.list(PairSelector::of_topic(wallet_topic))) {
    std::fprintf(stage.out(), "  %-10s %-6s  %3lld behind   %s\n", pair.name.publisher.c_str(),
                 std::string(to_string(pair.state)).c_str(), static_cast<long long>(pair.lag_events),
                 pair.last_error.c_str());
  }
}

std::string leader_of(const RelayAdmin& admin) {
  const std::vector<LeaderStatus> leaders = admin.leaders();
  return leaders.empty() || !leaders.front().alive ? std::string() : leaders.front().node;
}

struct Money {
  int sum = 0;
  bool solvent = true;
};
Money count_money(EventStore& store) {
  std::vector<std::string> all;
  all.reserve(wallets);
  for (int i = 0; i < wallets; ++i) all.push_back(wallet(i));
  Money money;
  const auto seen = store.project(balances_of(std::move(all)));
  for (const auto& [id, balance] : seen.state()) {
    money.sum += balance;
    money.solvent = money.solvent && balance >= 0;
  }
  return money;
}

}  // namespace

Result play_wallets(Stage& stage, Backstage& backstage) {
  std::fprintf(
      stage.out(),
      "\nEvent store and relay: %d tellers move money between %d wallets at the same time, each decision\n"
      "on what it has read. A relay tells a ledger, which somebody has paused, and a newsletter, whose\n"
      "printer has a paper jam.\n\n",
      tellers, wallets);
  std::ofstream(stage.place().paper_jam()).put('\n');
  const std::unique_ptr<Storage> storage = open(stage.place().url());
  EventStore store{*storage};
  const RelayAdmin reader{*storage};
  RelayAdmin admin{*storage};
  admin.pause(PairSelector::pair(wallet_topic, "ledger"));
  for (int i = 0; i < wallets; ++i) open_wallet(store, i);
  Tally tally;
  const bool conflict = show_conflict(stage, store, tally);
  trade(stage, store, tally);
  const bool failed = stage.await([&] {
    const auto newsletter = reader.find(wallet_topic, "newsletter");
    return newsletter && newsletter->state == PairState::failed;
  });
  // The relay is another process: it hears of the pause a moment later, and may have told all until then.
  const bool paused = stage.await([&] {
    const auto ledger = reader.find(wallet_topic, "ledger");
    if (ledger && ledger->state == PairState::paused && ledger->lag_events > 0) return true;
    trade(stage, store, tally);
    return false;
  });
  if (stage.left()) return {};
  print(stage, reader, "The ledger waits, the newsletter has stopped and says why:");

  std::filesystem::remove(stage.place().paper_jam());
  admin.resume(PairSelector::of_topic(wallet_topic));
  backstage.kill_first_relay_node();
  trade(stage, store, tally);
  const auto last_transfer = SteadyClock::now();
  const bool caught_up = stage.await([&] {
    const std::vector<PairStatus> pairs = reader.list();
    return !pairs.empty() && std::all_of(pairs.begin(), pairs.end(),
                                         [](const PairStatus& pair) { return pair.lag_events == 0; });
  });
  if (stage.left()) return {};
  print(stage, reader, "Both resumed; and the node that led was killed with kill -9 in the same moment:");
  const std::string leader = leader_of(reader);
  std::fprintf(stage.out(), "  %s leads now, caught up %.1f s after the last transfer\n",
               leader.empty() ? "nobody" : leader.c_str(),
               std::chrono::duration<double>(SteadyClock::now() - last_transfer).count());

  const Money money = count_money(store);
  const std::size_t written = Book::read(stage.place().ledger()).size();
  const auto head = static_cast<std::int64_t>(store.head());
  const bool good = conflict && paused && failed && caught_up && leader.starts_with("demo") &&
                    money.solvent && money.sum == wallets * opening &&
                    written == static_cast<std::size_t>(head) && head == wallets + tally.moved;
  return {.good = good,
          .story = std::to_string(tally.moved) + " transfers, " + std::to_string(tally.decided_again) +
                   " decided again, " + std::to_string(money.sum) + " in all wallets; " +
                   std::to_string(written) + " of " + std::to_string(head) + " events in the ledger",
          .figures = {{"transfers", tally.moved.load()},
                      {"refused", tally.refused.load()},
                      {"decidedAgain", tally.decided_again.load()},
                      {"money", money.sum},
                      {"events", head},
                      {"published", written},
                      {"leader", leader}}};
}

}  // namespace postrider::demo
