// SPDX-License-Identifier: Apache-2.0
#include "app/demo/wallets.hpp"

#include <utility>

namespace postrider::demo {

std::string wallet(int number) {
  return "wallet-" + std::to_string(number);
}

Projector<Balances> balances_of(std::vector<std::string> ids) {
  std::vector<QueryItem> items;
  items.reserve(ids.size());
  for (std::string& id : ids) items.push_back({.types = {}, .tags = {{"wallet_id", std::move(id)}}});
  return {.query = Query::of(std::move(items)), .apply = [](Balances& balances, const StoredEvent& event) {
            const int amount = std::stoi(std::string(event.data()));
            const auto& from = event.metadata().find("from");
            if (from != event.metadata().end()) balances[from->second] -= amount;
            balances[event.metadata().at("to")] += amount;
          }};
}

void open_wallet(EventStore& store, int number) {
  store.append({AppendEvent::builder("WalletOpened")
                    .tag("wallet_id", wallet(number))
                    .metadata("to", wallet(number))
                    .data(std::to_string(opening))});
}

void transfer(EventStore& store, int from, int to, int amount, Tally& tally) {
  const std::string giver = wallet(from);
  const std::string taker = wallet(to);
  const CommandOutcome outcome = CommandExecutor{store, {.max_attempts = 1000}}.execute([&](EventStore&) {
    const auto seen = store.project(balances_of({giver}));
    const auto found = seen.state().find(giver);
    if (found == seen.state().end() || found->second < amount) {
      return CommandResult::nothing("not enough money");
    }
    return CommandResult::conditional({AppendEvent::builder("MoneyTransferred")
                                           .tag("wallet_id", giver)
                                           .tag("wallet_id", taker)
                                           .metadata("from", giver)
                                           .metadata("to", taker)
                                           .data(std::to_string(amount))},
                                      seen.condition());
  });
  using Kind = CommandOutcome::Kind;
  tally.moved += outcome.kind == Kind::appended ? 1 : 0;
  tally.refused += outcome.kind == Kind::nothing ? 1 : 0;
  tally.decided_again += outcome.attempts - 1;
}

}  // namespace postrider::demo
