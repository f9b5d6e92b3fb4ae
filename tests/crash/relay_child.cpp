// SPDX-License-Identifier: Apache-2.0
// A node that the crash tests kill and freeze: relays two topics to two publishers, which write into a file.
//
//   relay_child URL SCHEMA FILE [option=value ...]
//
// A line of the file: topic, publisher, epoch, positions of the batch. Says "ready", and "d" for each batch;
// with hold=1 it says "holding" inside its first batch and goes on when it is told to; with hold=2, right
// before it writes how far it is. Ends with its input, and says how many of its writes were refused.
#include <iostream>
#include <utility>

#include "core/failpoint.hpp"
#include "postrider/open.hpp"
#include "postrider/relay.hpp"
#include "postrider/testing.hpp"
#include "support/child_main.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

testing::Signal held;

/// Stands still until it is told to go on.
void hold() {
  say("holding");
  std::string line;
  std::getline(std::cin, line);
  held.set();
}

class FilePublisher final : public Publisher {
 public:
  FilePublisher(std::string name, const std::string& path, bool hold)
      : name_(std::move(name)), file_(path), hold_(hold) {}

  PublishResult publish_batch(std::span<const StoredEvent> events, const PublishContext& context) override {
    if (std::exchange(hold_, false)) hold();
    std::string line = std::string(context.topic) + " " + name_ + " " +
                       std::to_string(static_cast<std::int64_t>(context.epoch));
    for (const StoredEvent& event : events) {
      line += " " + std::to_string(static_cast<std::int64_t>(event.position()));
    }
    if (!file_.write(line)) return PublishResult::unavailable(0, "the file is full");
    say("d");
    return PublishResult::all();
  }
  std::string name() const override { return name_; }

 private:
  const std::string name_;
  const LineFile file_;
  bool hold_;
};

int run(int argc, char** argv) {
  if (argc < 4) throw std::invalid_argument("usage: relay_child URL SCHEMA FILE [option=value ...]");
  const ChildNumbers numbers =
      child_numbers(argc, argv, 4, {{"lease", 10'000}, {"heartbeat", 500}, {"balanced", 0}, {"hold", 0}});
  const auto storage = open(argv[1], {.schema = Identifier(argv[2])});
  testing::RecordingMetrics metrics;
  RelayOptions options;
  options.leadership = numbers.at("balanced") != 0 ? Leadership::balanced : Leadership::global;
  options.lease = std::chrono::milliseconds(numbers.at("lease"));
  options.heartbeat = std::chrono::milliseconds(numbers.at("heartbeat"));
  options.metrics = &metrics;
  options.log = [](LogLevel, std::string_view) {};
  Relay relay(*storage, options);
  PairOptions pair;
  pair.polling_interval = 100ms;
  pair.backoff.max = 400ms;
  pair.batch_size = 20;
  const auto p = std::make_shared<FilePublisher>("p", argv[3], numbers.at("hold") == 1);
  const auto q = std::make_shared<FilePublisher>("q", argv[3], false);
  relay.add({.name = "all"}, p, pair).add({.name = "all"}, q, pair);
  relay.add({.name = "odd", .required_tags = {"odd"}}, p, pair)
      .add({.name = "odd", .required_tags = {"odd"}}, q, pair);
#if defined(POSTRIDER_FAILPOINTS)
  if (numbers.at("hold") == 2) {
    failpoints::set("relay.progress.before_write", [first = true]() mutable {
      if (std::exchange(first, false)) hold();
    });
  }
#endif
  relay.start();
  say("ready");
  std::string line;
  if (numbers.at("hold") != 0) (void)held.await(60s);  // the input is the publisher's until then
  while (std::getline(std::cin, line)) {
  }
  relay.stop();
  say("refused " + std::to_string(metrics.get(testing::RecordingMetrics::Counter::relay_refused_writes)));
  return 0;
}

}  // namespace
}  // namespace postrider::test

int main(int argc, char** argv) {
  return postrider::test::child_main(argc, argv, postrider::test::run);
}
