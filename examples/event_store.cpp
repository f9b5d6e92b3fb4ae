// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <postrider/postrider.hpp>
#include <string>

int main(int argc, char** argv) {
  using namespace postrider;

  auto storage = open(argc > 1 ? argv[1] : "sqlite:event_store.db");
  storage->migrate();
  EventStore store{*storage};
  const std::string wallet = "w" + std::to_string(static_cast<std::int64_t>(store.head()));
  store.append({AppendEvent::builder("MoneyDeposited").tag("wallet", wallet).data("10")});

  const Projector<int> balance{
      .query = Query::tag("wallet", wallet), .apply = [](int& sum, const StoredEvent& event) {
        sum += (event.type() == "MoneyDeposited" ? 1 : -1) * std::stoi(std::string(event.data()));
      }};
  for (const int amount : {7, 7}) {
    const auto outcome = CommandExecutor{store}.execute([&](EventStore&) {
      const auto seen = store.project(balance);
      if (seen.state() < amount) return CommandResult::nothing("not enough money");
      // Appended only if nobody touched this wallet meanwhile; else all of this runs again.
      return CommandResult::conditional(
          {AppendEvent::builder("MoneyWithdrawn").tag("wallet", wallet).data(std::to_string(amount))},
          seen.condition());
    });
    std::cout << "withdraw " << amount << ": " << to_string(outcome.kind) << " " << outcome.reason << "\n";
  }
}
