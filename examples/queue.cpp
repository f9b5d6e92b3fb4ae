// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <latch>
#include <postrider/postrider.hpp>
#include <string>

struct OrderPlaced {
  int number = 0;
};

// How your struct becomes an event and back; use the JSON library that you have.
template <>
struct postrider::EventCodec<OrderPlaced> {
  static constexpr std::string_view type = "OrderPlaced";
  static std::string to_json(const OrderPlaced& order) { return std::to_string(order.number); }
  static OrderPlaced from_json(std::string_view json) { return {std::stoi(std::string(json))}; }
};

int main(int argc, char** argv) {
  using namespace postrider;

  auto storage = open(argc > 1 ? argv[1] : "sqlite:queue.db");
  storage->migrate();

  std::latch mailed{1};
  EventQueue queue{*storage};
  EventManager manager{queue};
  manager.register_handler<OrderPlaced>(
      "invoice", [](const OrderPlaced& order) { std::cout << "invoice for order " << order.number << "\n"; });
  manager.register_handler<OrderPlaced>("mail", [&](const OrderPlaced&, HandlerContext& context) {
    // The first attempt fails. Only this handler is tried again, "invoice" is not.
    if (context.attempts() == 1) return EventHandledResult::transient_error("mail server busy");
    mailed.count_down();
    return EventHandledResult::success();
  });
  manager.start();

  queue.publish(OrderPlaced{42});  // or publish(tx, …) in your own transaction
  mailed.wait();
}
