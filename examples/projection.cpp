// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <iostream>
#include <postrider/postrider.hpp>

int main(int argc, char** argv) {
  using namespace postrider;
  using namespace std::chrono_literals;

  auto storage = open(argc > 1 ? argv[1] : "sqlite:projection.db");
  storage->migrate();
  auto setup = storage->begin();
  setup.execute("create table if not exists sold (item varchar(100) primary key, pieces integer not null)");
  setup.commit();

  // A view of the event log. Its place in the log is stored in the transaction that writes the view, so every
  // event counts once, whatever crashes. Give all nodes the same projections: one of them runs each.
  ProjectionRunner projections{*storage};
  projections.add({.name = "sold", .types = {"Sold"}}, [](Tx& tx, const LogEntry& entry) {
    const std::string item(entry.event->payload());
    if (tx.execute("update sold set pieces = pieces + 1 where item = ?", item).affected == 0) {
      tx.execute("insert into sold (item, pieces) values (?, 1)", item);
    }
  });
  projections.start();

  EventQueue queue{*storage};
  EventManager manager{queue};
  manager.register_handler("pack", "Sold", [](const Event&) {});
  manager.start();

  EventLog log{*storage};
  const auto before = static_cast<std::int64_t>(log.head());
  for (const char* item : {R"("book")", R"("pen")", R"("book")"}) queue.publish(Event::json("Sold", item));

  // Read your own writes: wait until all three are in the log, then until the log is in the view.
  for (LogSeq end{before}; end < LogSeq{before + 3};) end = log.wait(end, 10s);
  if (!projections.admin().wait_until("sold", log.head(), 10s)) return 1;
  const Rows rows = storage->begin().execute("select item, pieces from sold order by item");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::cout << rows.text(i, 0) << ": " << rows.integer(i, 1) << "\n";
  }
}
