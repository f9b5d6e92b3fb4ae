// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <latch>
#include <postrider/postrider.hpp>

int main(int argc, char** argv) {
  using namespace postrider;

  // Or postgresql://… or mariadb://…
  auto storage = open(argc > 1 ? argv[1] : "sqlite:quickstart.db");
  storage->migrate();  // creates the tables; safe to run every time

  std::latch delivered{1};
  Outbox outbox{*storage};
  outbox.on("UserCreated", [&](const Event& e) {
    std::cout << "welcome mail for " << e.payload() << "\n";
    delivered.count_down();
  });
  outbox.start();

  auto setup = storage->begin();
  setup.execute("create table if not exists users (name text)");
  setup.commit();

  auto tx = storage->begin();
  tx.execute("insert into users (name) values (?)", "Ada");
  outbox.publish(tx, Event::json("UserCreated", R"({"name":"Ada"})"));
  tx.commit();  // the listener runs now, on a worker; after a rollback it never would

  delivered.wait();
}
