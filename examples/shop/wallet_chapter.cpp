// SPDX-License-Identifier: Apache-2.0
// The third chapter: wallets in the event store, transfers under contention, and a relay with two publishers.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <postrider/postrider.hpp>
#include <set>
#include <thread>
#include <vector>

#include "node_process.hpp"
#include "shop.hpp"

namespace shop {

namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;
using postrider::AppendEvent;
using postrider::Position;

constexpr int wallets = 5;
constexpr int opening = 100;
constexpr int tellers = 4;
constexpr int transfers_each = 60;
const char* const topic = "wallet-events";

std::filesystem::path ledger_file(const Place& place) {
  return place.folder / "ledger.txt";
}
/// While this file is there, the newsletter's printer refuses everything.
std::filesystem::path jam_file(const Place& place) {
  return place.folder / "paper-jam";
}

/// Writes one line per event: its position.
class Ledger final : public postrider::Publisher {
 public:
  explicit Ledger(const Place& place) : out_(ledger_file(place), std::ios::app) {}
  std::string name() const override { return "Ledger"; }
  postrider::PublishResult publish_batch(std::span<const postrider::StoredEvent> events,
                                         const postrider::PublishContext&) override {
    for (const auto& event : events) out_ << static_cast<std::int64_t>(event.position()) << "\n";
    out_.flush();
    return postrider::PublishResult::all();
  }

 private:
  std::ofstream out_;
};

class Newsletter final : public postrider::Publisher {
 public:
  explicit Newsletter(const Place& place) : jam_(jam_file(place)) {}
  std::string name() const override { return "Newsletter"; }
  postrider::PublishResult publish_batch(std::span<const postrider::StoredEvent>,
                                         const postrider::PublishContext&) override {
    if (std::filesystem::exists(jam_)) return postrider::PublishResult::refused(0, "paper jam");
    return postrider::PublishResult::all();
  }

 private:
  std::filesystem::path jam_;
};

std::string wallet(int number) {
  return "wallet-" + std::to_string(number);
}

using Balances = std::map<std::string, int>;

postrider::Projector<Balances> balances_of(std::vector<std::string> ids) {
  std::vector<postrider::QueryItem> items;
  for (std::string& id : ids) items.push_back({.types = {}, .tags = {{"wallet_id", std::move(id)}}});
  return {.query = postrider::Query::of(std::move(items)),
          .apply = [](Balances& balances, const postrider::StoredEvent& event) {
            const int amount = std::stoi(std::string(event.data()));
            const auto& from = event.metadata().find("from");
            if (from != event.metadata().end()) balances[from->second] -= amount;
            balances[event.metadata().at("to")] += amount;
          }};
}

struct Tally {
  std::atomic<int> moved{0};
  std::atomic<int> refused{0};
  std::atomic<int> decided_again{0};
};

void transfer(postrider::EventStore& store, const std::string& from, const std::string& to, int amount,
              Tally& tally) {
  const auto outcome =
      postrider::CommandExecutor{store, {.max_attempts = 1000}}.execute([&](postrider::EventStore&) {
        const auto seen = store.project(balances_of({from}));
        const auto found = seen.state().find(from);
        if (found == seen.state().end() || found->second < amount) {
          return postrider::CommandResult::nothing("not enough money");
        }
        return postrider::CommandResult::conditional({AppendEvent::builder("MoneyTransferred")
                                                          .tag("wallet_id", from)
                                                          .tag("wallet_id", to)
                                                          .metadata("from", from)
                                                          .metadata("to", to)
                                                          .data(std::to_string(amount))},
                                                     seen.condition());
      });
  using Kind = postrider::CommandOutcome::Kind;
  tally.moved += outcome.kind == Kind::appended ? 1 : 0;
  tally.refused += outcome.kind == Kind::nothing ? 1 : 0;
  tally.decided_again += outcome.attempts - 1;
}

void trade(postrider::EventStore& store, Tally& tally) {
  std::vector<std::thread> threads;
  for (int teller = 0; teller < tellers; ++teller) {
    threads.emplace_back([&, teller] {
      for (int i = 0; i < transfers_each && !told_to_leave(); ++i) {
        const int from = (teller + i) % wallets;
        transfer(store, wallet(from), wallet((from + 1 + i % (wallets - 1)) % wallets), 1 + (i * 7) % 40,
                 tally);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Asks until it is so. False when that takes too long, or when told to leave.
template <class Condition>
bool await(const Condition& condition) {
  const auto deadline = SteadyClock::now() + 20s;
  while (!condition()) {
    if (SteadyClock::now() > deadline || told_to_leave()) return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

void print(const postrider::RelayAdmin& admin, const char* what) {
  std::printf("%s\n", what);
  for (const auto& pair : admin.list()) {
    std::printf("  %-10s %-6s  %3lld behind   %s\n", pair.name.publisher.c_str(),
                std::string(to_string(pair.state)).c_str(), static_cast<long long>(pair.lag_events),
                pair.last_error.c_str());
  }
}

std::atomic<bool> relay_told_to_stop{false};

}  // namespace

int run_relay_node(const Place& place) {
  std::signal(SIGTERM, [](int) { relay_told_to_stop = true; });
  const auto storage = postrider::open(place.url());
  postrider::RelayOptions options;
  options.heartbeat = 200ms;
  options.log = [](postrider::LogLevel, std::string_view) {};
  postrider::Relay relay{*storage, options};
  postrider::PairOptions pair;
  pair.polling_interval = 50ms;
  pair.backoff.max = 200ms;
  pair.max_failures = 3;
  const postrider::Topic events{.name = topic, .required_tags = {"wallet_id"}};
  relay.add(events, std::make_shared<Ledger>(place), pair);
  relay.add(events, std::make_shared<Newsletter>(place), pair);
  relay.start();
  while (!relay_told_to_stop) std::this_thread::sleep_for(20ms);
  relay.stop();
  return 0;
}

int run_wallet_chapter(const Place& place, const std::string& program) {
  std::printf(
      "\n%d tellers move money between %d wallets at the same time, each decision on what it\n"
      "has read; a relay tells a ledger and a newsletter, whose printer has a paper jam.\n\n",
      tellers, wallets);
  std::ofstream(jam_file(place)).put('\n');
  const auto storage = postrider::open(place.url());
  postrider::EventStore store{*storage};
  for (int i = 0; i < wallets; ++i) {
    store.append({AppendEvent::builder("WalletOpened")
                      .tag("wallet_id", wallet(i))
                      .metadata("to", wallet(i))
                      .data(std::to_string(opening))});
  }
  postrider::RelayAdmin admin{*storage};
  std::map<pid_t, std::unique_ptr<NodeProcess>> nodes;
  for (int i = 0; i < 2; ++i) {
    auto node = std::make_unique<NodeProcess>(program, "--relay", place);
    const pid_t pid = node->pid();
    nodes.emplace(pid, std::move(node));
  }
  Tally tally;
  trade(store, tally);
  const bool failed = await([&] {
    const auto newsletter = admin.find(topic, "Newsletter");
    return newsletter && newsletter->state == postrider::PairState::failed;
  });
  if (told_to_leave()) return interrupted_code;
  print(admin, "The newsletter has stopped and says why; the ledger does not mind:");

  std::filesystem::remove(jam_file(place));
  admin.resume(postrider::PairSelector::of_publisher("Newsletter"));
  const auto leaders = admin.leaders();
  const std::string leader = leaders.empty() ? "" : leaders.front().node;
  for (auto& [pid, node] : nodes) {
    if (leader.find("/" + std::to_string(pid) + "/") != std::string::npos) node->end(SIGKILL);
  }
  trade(store, tally);
  const auto killed_at = SteadyClock::now();
  const bool caught_up = await([&] {
    const auto pairs = admin.list();
    return pairs.size() == 2 && pairs[0].lag_events == 0 && pairs[1].lag_events == 0;
  });
  if (told_to_leave()) return interrupted_code;
  std::printf("\n");
  print(admin, "Resumed; and the node that led was killed with kill -9 in the same moment:");
  const auto now_leads = admin.leaders();
  const bool changed = !now_leads.empty() && now_leads.front().node != leader && now_leads.front().alive;
  std::printf("  %s leads now, caught up %.1f s after the last transfer\n",
              now_leads.empty() ? "nobody" : now_leads.front().node.c_str(),
              std::chrono::duration<double>(SteadyClock::now() - killed_at).count());
  for (auto& [pid, node] : nodes) {
    if (!node->ended()) node->end(SIGTERM);
  }

  std::vector<std::string> all;
  for (int i = 0; i < wallets; ++i) all.push_back(wallet(i));
  const auto final_state = store.project(balances_of(all));
  int sum = 0;
  bool solvent = true;
  for (const auto& [id, balance] : final_state.state()) {
    sum += balance;
    solvent = solvent && balance >= 0;
  }
  std::set<long long> written;
  std::ifstream ledger(ledger_file(place));
  for (long long position = 0; ledger >> position;) written.insert(position);
  const auto head = static_cast<long long>(store.head());
  const bool good = failed && caught_up && changed && solvent && sum == wallets * opening &&
                    written.size() == static_cast<std::size_t>(head) &&
                    head == wallets + static_cast<long long>(tally.moved);
  std::printf(
      "\n%d transfers, %d without enough money, %d decided again after a conflict; %d in all wallets\n",
      tally.moved.load(), tally.refused.load(), tally.decided_again.load(), sum);
  std::printf("%s\n",
              good ? "No wallet is overdrawn, no money was made or lost, and the ledger has every event."
                   : "NOT AS IT SHOULD BE.");
  return good ? 0 : 1;
}

}  // namespace shop
