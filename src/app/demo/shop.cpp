// SPDX-License-Identifier: Apache-2.0
#include "app/demo/shop.hpp"

#include <random>

#include "app/demo/book.hpp"
#include "postrider/open.hpp"

namespace postrider::demo {
namespace {

using namespace std::chrono_literals;

/// So many orders a second at most, to leave the machine to the others.
constexpr auto between_orders = 2ms;

}  // namespace

Shop::Shop(Storage& storage)
    : storage_(storage), outbox_(storage, {.log = [](LogLevel, std::string_view) {}}) {
  Transaction tx = storage_.begin();
  tx.execute(
      "create table if not exists shop_order (number integer primary key, item text not null, event text "
      "not null)");
  next_ = tx.execute("select coalesce(max(number), 0) + 1 from shop_order").integer(0, 0);
  tx.commit();
}

EventId Shop::take_order(bool changes_mind) {
  const std::int64_t number = next_++;
  const std::string order = std::to_string(number);
  const Event event = Event::builder("OrderPlaced")
                          .aggregate("Order", order)
                          .json(R"({"order":)" + order + R"(,"item":"postcard"})")
                          .build();
  Transaction tx = storage_.begin();
  tx.execute("insert into shop_order (number, item, event) values (?, ?, ?)", number, "postcard",
             std::string(event.id().view()));
  outbox_.publish(tx, event);
  if (changes_mind) {
    tx.rollback();
  } else {
    tx.commit();
  }
  return event.id();
}

int run_shop(const Place& place) {
  const cli::Interrupts interrupts;
  const std::unique_ptr<Storage> storage = open(place.url());
  Shop shop(*storage);
  const Book cancelled(place.cancelled());
  std::mt19937 luck{std::random_device{}()};
  while (!interrupts.wait_for(between_orders)) {
    const bool changes_mind = luck() % 12 == 0;
    const EventId id = shop.take_order(changes_mind);
    if (changes_mind) cancelled.note(id.view());
  }
  return 0;
}

}  // namespace postrider::demo
