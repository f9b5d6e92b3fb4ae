// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <postrider/postrider.hpp>

// A publisher sends a topic's events somewhere, in order.
struct Screen : postrider::Publisher {
  std::string name() const override { return "Screen"; }
  postrider::PublishResult publish_batch(std::span<const postrider::StoredEvent> events,
                                         const postrider::PublishContext& context) override {
    for (const auto& event : events)
      std::cout << context.topic << ": " << event.type() << " " << event.data() << "\n";
    return postrider::PublishResult::all();
  }
};

int main(int argc, char** argv) {
  using namespace postrider;

  auto storage = open(argc > 1 ? argv[1] : "sqlite:relay.db");
  storage->migrate();
  EventStore store{*storage};
  store.append({AppendEvent::builder("MoneyDeposited").tag("wallet_id", "1").data("10")});

  Relay relay{*storage};
  relay.add({.name = "wallet-events", .required_tags = {"wallet_id"}}, std::make_shared<Screen>());
  relay.run_once();  // or start(), which goes on until stop()

  for (const PairStatus& pair : relay.admin().list()) {
    std::cout << pair.name.topic << " to " << pair.name.publisher << ": " << to_string(pair.state) << ", "
              << pair.lag_events << " behind\n";
  }
}
