// SPDX-License-Identifier: Apache-2.0
// Who names what is not there is told so: ids and pairs.
#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

#include "app/cli/cli_fixture.hpp"
#include "postrider/event_queue.hpp"
#include "storage/progress_store.hpp"

namespace postrider::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class NotFoundTest : public CliTest {
 protected:
  void publish(const std::string& id) { EXPECT_EQ(run({"publish", "T", "--id", id}).code, 0); }
  /// Some are changed, the others named; with -o json as well.
  void expect(std::vector<std::string> arguments, int events, const std::vector<std::string>& missing) {
    SCOPED_TRACE(CLI::detail::join(arguments, " "));
    arguments.insert(arguments.end(), {"-o", "json"});
    const Said said = run(arguments);
    EXPECT_EQ(said.code, missing.empty() ? 0 : 1) << said.err;
    const boost::json::value answer = said.json();
    EXPECT_EQ(answer.at("events"), events);
    EXPECT_EQ(answer.as_object().contains("notFound"), !missing.empty());
    if (missing.empty()) return;
    EXPECT_EQ(answer.at("notFound"), boost::json::value(boost::json::array(missing.begin(), missing.end())));
    const std::string number =
        std::to_string(missing.size()) + (missing.size() == 1 ? " id was" : " ids were");
    EXPECT_THAT(said.err, AllOf(HasSubstr("postrider: " + number + " not found among the "),
                                HasSubstr(": " + CLI::detail::join(missing, ", ") + ". Hint: ")));
  }
};
POSTRIDER_FOR_EACH_BACKEND(NotFoundTest);

TEST_P(NotFoundTest, IdsOfTheOutbox) {
  publish("a");
  publish("b");
  expect({"outbox", "requeue", "--id", "a", "--id", "none", "--id", "none"}, 0, {"none"});
  expect({"outbox", "cancel", "--id", "none", "--dry-run"}, 0, {"none"});
  expect({"outbox", "cancel", "--id", "a", "--id", "none", "--id", "neither"}, 1, {"none", "neither"});
  expect({"outbox", "cancel", "--id", "a"}, 0, {"a"});
  EXPECT_EQ(json({"outbox", "counts"}).at("dead"), 1) << "those that are there were cancelled";
  expect({"dead", "replay", "--id", "a", "--id", "b"}, 1, {"b"});
  expect({"dead", "replay", "--id", "a", "--dry-run"}, 0, {"a"});
  const Said said = run({"dead", "replay", "--id", "a"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.out, HasSubstr("0 dead letters will be delivered again"));
  EXPECT_THAT(said.err,
              HasSubstr("1 id was not found among the dead letters: a. Hint: postrider outbox show"));
}

TEST_P(NotFoundTest, IdsOfTheQueueAndItsLog) {
  EventQueue queue(storage());
  const Event event = Event::builder("Job").id(EventId("job")).json("{}").build();
  const std::string id = std::to_string(static_cast<std::int64_t>(queue.publish(event).id()));
  expect({"queue", "requeue", "--id", id, "--event-id", "job"}, 0, {});
  expect({"queue", "release", "--event-id", "job", "--event-id", "none"}, 0, {"none"});
  expect({"queue", "replay", "--id", id, "--event-id", "job"}, 0, {id, "job"});
  expect({"queue", "cancel", "--id", id, "--id", "777"}, 1, {"777"});
  expect({"queue", "cancel", "--id", id}, 0, {id});
  expect({"queue", "replay", "--id", id, "--id", "777"}, 1, {"777"});
  expect({"queue", "replay", "--event-id", "job"}, 1, {});
}

TEST_P(NotFoundTest, AFilterThatFindsNothingIsNoFailure) {
  expect({"outbox", "requeue", "--type", "None"}, 0, {});
  expect({"outbox", "cancel", "--all"}, 0, {});
  expect({"dead", "replay", "--type", "None"}, 0, {});
  expect({"queue", "cancel", "--type", "None"}, 0, {});
  expect({"queue", "replay", "--all"}, 0, {});
  expect({"topics", "discard", "--all"}, 0, {});
}

TEST_P(NotFoundTest, PairsThatNoRelayHasMade) {
  storage().progress_store().add(std::vector<NewPair>{{{"wallets", "kafka"}, Position{0}}});
  for (const std::vector<std::string>& verb :
       std::vector<std::vector<std::string>>{{"pause"},
                                             {"resume"},
                                             {"reset"},
                                             {"rewind", "--to", "0"},
                                             {"discard"},
                                             {"discard", "--dry-run"}}) {
    std::vector<std::string> arguments{"topics"};
    arguments.insert(arguments.end(), verb.begin(), verb.end());
    arguments.insert(arguments.end(), {"--topic", "walets"});
    const Said said = run(arguments);
    EXPECT_EQ(said.code, 1) << verb.front();
    EXPECT_THAT(said.err, AllOf(HasSubstr("there is no pair of topic 'walets'"), HasSubstr("topics list")));
    arguments.back() = "wallets";
    EXPECT_EQ(run(arguments).code, 0) << verb.front();
  }
  EXPECT_THAT(run({"topics", "discard", "--topic", "wallets", "--publisher", "nats"}).err,
              HasSubstr("there is no pair of topic 'wallets' of publisher 'nats'"));
  EXPECT_THAT(run({"topics", "list", "--topic", "walets"}).out, HasSubstr("There is no such pair"));
}

}  // namespace
}  // namespace postrider::cli
