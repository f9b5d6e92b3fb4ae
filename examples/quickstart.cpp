// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <latch>
#include <postrider/postrider.hpp>

int main() {
  using namespace postrider;

  auto storage = open("sqlite:quickstart.db");  // or postgresql://… or mariadb://…
  storage->migrate();                           // creates the tables; safe to run every time

  Outbox outbox{*storage};
  std::latch delivered{1};
  outbox.on("UserCreated", [&](const Event& e) {
    std::cout << "welcome mail for " << e.payload() << "\n";
    delivered.count_down();
  });
  outbox.start();

  auto tx = storage->begin();
  tx.execute("create table if not exists users (name text)");
  tx.execute("insert into users (name) values (?)", "Ada");
  outbox.publish(tx, Event::json("UserCreated", R"({"name":"Ada"})"));
  tx.commit();  // the listener runs now, on a worker; after a rollback it never would

  delivered.wait();
}
