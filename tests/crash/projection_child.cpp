// SPDX-License-Identifier: Apache-2.0
// A node that the crash tests kill: runs one projection until its view has reached a place in the log.
//
//   projection_child URL SCHEMA VIEW TARGET
//
// Says "done" then and ends.
#include <cstdlib>
#include <string>
#include <thread>

#include "postrider/postrider.hpp"
#include "support/child_main.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

int run(int argc, char** argv) {
  if (argc != 5) throw std::invalid_argument("usage: projection_child URL SCHEMA VIEW TARGET");
  StorageOptions options;
  options.schema = Identifier(argv[2]);
  const auto storage = open(argv[1], options);
  const std::string view = argv[3];
  ProjectionRunner runner{
      *storage,
      {.lease = 200ms, .poll_interval = 1ms, .poll_interval_max = 5ms, .log = [](LogLevel, std::string_view) {
       }}};
  ProjectionOptions projection;
  projection.name = "view";
  projection.batch_size = 7;
  projection.poison = PoisonPolicy::skip;
  projection.max_failures = 1;
  // No key keeps an entry from being noted twice: only the position does.
  runner.add(projection, [view](Tx& tx, const LogEntry& entry) {
    if (entry.event->type() == "Poison") throw std::runtime_error("poison");
    tx.execute("insert into " + view + " (seq) values (?)", static_cast<std::int64_t>(entry.seq));
  });
  runner.start();
  const LogSeq target{std::atoll(argv[4])};
  // Until somebody has begun there is nothing to wait for.
  while (!runner.admin().live_version("view").has_value()) std::this_thread::yield();
  if (!runner.admin().wait_until("view", target, 60s)) return 3;
  say("done");
  return 0;
}

}  // namespace
}  // namespace postrider::test

int main(int argc, char** argv) {
  return postrider::test::child_main(argc, argv, postrider::test::run);
}
