// SPDX-License-Identifier: Apache-2.0
// Publishing inside a transaction of your own driver: here sqlite3, and in the same way PGconn*, MYSQL* and
// pqxx::work.
#include <sqlite3.h>

#include <iostream>
#include <latch>
#include <postrider/postrider.hpp>

int main() {
  using namespace postrider;

  auto storage = open("sqlite:adopt.db");
  storage->migrate();
  std::latch delivered{1};
  Outbox outbox{*storage};
  outbox.on_all([&](const Event& e) {
    std::cout << e.type() << " " << e.payload() << "\n";
    delivered.count_down();
  });
  outbox.start();

  sqlite3* mine = nullptr;
  if (sqlite3_open("adopt.db", &mine) != SQLITE_OK) return 1;
  sqlite3_busy_timeout(mine, 5000);  // SQLite has one writer: wait for the others
  sqlite3_exec(mine, "begin immediate", nullptr, nullptr, nullptr);
  auto tx = sqlite::adopt(mine);
  auto staged = outbox.publish(tx, Event::json("OrderPlaced", R"({"order":7})"));
  if (sqlite3_exec(mine, "commit", nullptr, nullptr, nullptr) == SQLITE_OK) {
    staged.committed();  // delivers now; without it the poller does, a second or more later
  }
  delivered.wait();
  sqlite3_close(mine);
}
