// SPDX-License-Identifier: Apache-2.0
// Appends one after the other to an event store, until it is killed or done:
//
//   stream_append_child URL SCHEMA RUN [option=value ...]
//
// `count` appends of `events` events each. All events of an append have the tags run=RUN and append=N, and it
// is conditional on being the first with both, so that doing it again is a conflict. With own=1 each is in a
// transaction that also writes N into the table `effect`. Says "appended FIRST LAST" for each.
#include <stdexcept>
#include <string>
#include <vector>

#include "postrider/postrider.hpp"
#include "support/child_main.hpp"

namespace postrider::test {
namespace {

int run(int argc, char** argv) {
  if (argc < 4) throw std::invalid_argument("usage: stream_append_child URL SCHEMA RUN [option=value ...]");
  const ChildNumbers numbers = child_numbers(argc, argv, 4, {{"count", 1}, {"events", 3}, {"own", 0}});
  const std::string schema = argv[2];
  const auto storage = open(argv[1], {.schema = Identifier(schema)});
  const std::string table = schema + (storage->kind() == BackendKind::postgres ? "." : "_") + "effect";
  EventStore store(*storage);
  for (long n = 1; n <= numbers.at("count"); ++n) {
    const Tags tags{{"append", std::to_string(n)}, {"run", argv[3]}};
    std::vector<AppendEvent> events;
    for (long i = 0; i < numbers.at("events"); ++i) {
      events.push_back(AppendEvent::builder("Appended").tags(tags).data(std::to_string(i)).build());
    }
    const AppendCondition first{.query = Query::tags(tags)};
    AppendResult result;
    if (numbers.at("own") != 0) {
      Transaction tx = storage->begin();
      tx.execute("insert into " + table + " (n) values (?)", static_cast<std::int64_t>(n));
      result = store.append_if(tx, events, first);
      tx.commit();
    } else {
      result = store.append_if(events, first);
    }
    const Appended& appended = std::get<Appended>(result);
    say("appended " + std::to_string(static_cast<std::int64_t>(appended.first)) + " " +
        std::to_string(static_cast<std::int64_t>(appended.last)));
  }
  return 0;
}

}  // namespace
}  // namespace postrider::test

int main(int argc, char** argv) {
  return postrider::test::child_main(argc, argv, postrider::test::run);
}
