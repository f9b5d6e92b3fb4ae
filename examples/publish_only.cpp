// SPDX-License-Identifier: Apache-2.0
#include <postrider/postrider.hpp>

int main(int argc, char** argv) {
  using namespace postrider;

  auto storage = open(argc > 1 ? argv[1] : "sqlite:shop.db");
  storage->migrate();
  Outbox outbox{*storage};  // no listeners and no start(): the daemon delivers

  auto tx = storage->begin();
  outbox.publish(tx, Event::json("OrderPlaced", R"({"id":1})"));
  tx.commit();
}
