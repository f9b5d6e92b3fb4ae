// SPDX-License-Identifier: Apache-2.0
#include "app/config/daemon_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "postrider/error.hpp"
#include "support/temp_dir.hpp"

namespace postrider::config {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::array<const char*, 1> no_environment{nullptr};
const std::string storage = "[storage]\nurl = \"sqlite:x.db\"\n";
const std::string a_file = "[sinks.out]\ntype = \"file\"\npath = \"x.jsonl\"\n";

DaemonConfig read(const std::string& text) {
  return parse_daemon_config(text, "p.toml", no_environment.data()).config;
}

std::string refusal(const std::string& text) {
  try {
    (void)read(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "taken";
}

TEST(DaemonConfig, NeedsNothingButADatabase) {
  const DaemonConfig config = read(storage);
  EXPECT_EQ(config.storage.url, "sqlite:x.db");
  EXPECT_FALSE(config.relay.enabled) << "there is no topic";
  EXPECT_FALSE(config.outbox.enabled) << "there is no route";
  EXPECT_FALSE(config.eventlog.enabled);
  EXPECT_THAT(refusal(""), HasSubstr("storage.url is refused: it is missing"));
}

TEST(DaemonConfig, TakesTheSeedsTopics) {
  const DaemonConfig config = read(storage + a_file + R"(
[relay]
polling-interval-ms = 5000
batch-size = 50
[relay.backoff]
threshold = 4
max-seconds = 30
[relay.topics.wallet-events]
required-tags = ["wallet_id"]
publishers = ["out", "LogPublisher"]
[relay.topics.payment-events]
any-of-tags = ["payment_id", "transfer_id"]
exact-tags = ["kind=eu"]
event-types = ["Paid"]
publishers = ["out"]
batch-size = 7
start = "head"
poison = "dead-letter"
)");
  EXPECT_TRUE(config.relay.enabled);
  ASSERT_EQ(config.relay.topics.size(), 2U);
  const TopicConfig& wallets = config.relay.topics[0];
  EXPECT_EQ(wallets.topic.name, "wallet-events");
  EXPECT_THAT(wallets.topic.required_tags, ElementsAre("wallet_id"));
  EXPECT_THAT(wallets.publishers, ElementsAre("out", "LogPublisher"));
  EXPECT_EQ(wallets.pair.polling_interval, 5s);
  EXPECT_EQ(wallets.pair.batch_size, 50U);
  EXPECT_EQ(wallets.pair.backoff.threshold, 4);
  EXPECT_EQ(wallets.pair.backoff.max, 30s);
  const TopicConfig& payments = config.relay.topics[1];
  EXPECT_EQ(payments.pair.batch_size, 7U) << "a topic may have its own";
  EXPECT_EQ(payments.pair.poison, PoisonAction::dead_letter);
  EXPECT_FALSE(payments.pair.start.position().has_value());
  EXPECT_EQ(payments.topic.exact_tags, (Tags{{.key = "kind", .value = "eu"}}));
}

TEST(DaemonConfig, RoutesMatchWhatTheyName) {
  const DaemonConfig config = read(storage + a_file + R"(
[[outbox.routes]]
type = "OrderPlaced"
tenant = "t1"
sink = "out"
[[outbox.routes]]
aggregate = "Order"
sink = "out"
)");
  ASSERT_EQ(config.outbox.routes.size(), 2U);
  const Event placed = Event::builder("OrderPlaced").tenant("t1").json("{}").build();
  const Event other = Event::builder("OrderPlaced").tenant("t2").aggregate("Order", "1").json("{}").build();
  EXPECT_TRUE(config.outbox.routes[0].matches(placed));
  EXPECT_FALSE(config.outbox.routes[0].matches(other));
  EXPECT_FALSE(config.outbox.routes[1].matches(placed));
  EXPECT_TRUE(config.outbox.routes[1].matches(other));
}

TEST(DaemonConfig, RefusesWhatDoesNotFitTogether) {
  EXPECT_THAT(
      refusal(storage +
              "[relay.topics.t]\npublishers = [\"kafak\"]\n[sinks.kafka]\ntype = \"file\"\npath = \"x\"\n"),
      AllOf(HasSubstr("line 4: relay.topics.t.publishers is refused: there is no sink 'kafak'"),
            EndsWith("did you mean kafka?")));
  EXPECT_THAT(refusal(storage + "[relay.topics.t]\npublishers = [\"LogPublisher\", \"LogPublisher\"]\n"),
              HasSubstr("publishers is refused: 'LogPublisher' stands there twice"));
  EXPECT_THAT(refusal(storage + "[[outbox.routes]]\nsink = \"LogPublisher\"\n"),
              HasSubstr("there is no sink 'LogPublisher'"))
      << "it is a publisher of the relay";
  EXPECT_THAT(refusal(storage + "[[outbox.routes]]\ntype = \"T\"\n"),
              HasSubstr("line 3: sink of [[outbox.routes]] is refused"));
  EXPECT_THAT(refusal(storage + "[relay.topics.t]\nrequired-tags = [\"a\"]\n"),
              HasSubstr("a topic without publishers"));
  EXPECT_THAT(refusal(storage + "[sinks.x]\npath = \"y\"\n"),
              AllOf(HasSubstr("type"), HasSubstr("it is missing")));
  EXPECT_THAT(refusal(storage + "[sinks.x]\ntype = \"fax\"\n"),
              AllOf(HasSubstr("'fax'"), HasSubstr("there are: file")));
  EXPECT_THAT(refusal(storage + "[sinks.x]\ntype = \"file\"\n"), HasSubstr("path is refused: it is missing"));
  EXPECT_THAT(refusal(storage + "[sinks.x]\ntype = \"file\"\npath = \"y\"\nkeeep = 1\n"),
              EndsWith("did you mean keep?"));
  EXPECT_THAT(refusal(storage + "[relay]\nlease-ms = 1000\nheartbeat-ms = 500\n"),
              HasSubstr("a third of lease-ms"));
  EXPECT_THAT(refusal(storage + "[server]\ntls-key = \"k\"\n"), HasSubstr("go together"));
  EXPECT_THAT(refusal(storage + "[spill]\nfolders = [\"a\", \"\"]\n"),
              HasSubstr("line 4: spill.folders is refused: one is empty"));
  EXPECT_THAT(refusal("[storage]\nurl = \"sqlite:x\"\nschema = \"a b\"\n"),
              HasSubstr("line 3: storage.schema"));
  EXPECT_THAT(
      refusal(storage + "[sinks.a-b]\ntype = \"file\"\npath = \"x\"\n[sinks.a_b]\ntype = \"file\"\npath = "
                        "\"y\"\n"),
      AllOf(HasSubstr("line 6: sinks.a_b is refused: the environment variable POSTRIDER_SINKS_A_B_TYPE would "
                      "stand for an option of [sinks.a-b] as well"),
            Not(HasSubstr("reasons"))));
  EXPECT_THAT(refusal(storage + "[rely]\n"), EndsWith("did you mean relay?"));
  EXPECT_THAT(
      refusal(storage + "[relay.topics.t]\npublishers = [\"LogPublisher\"]\nexact-tags = [\"nothing\"]\n"),
      HasSubstr("exact-tags"));
}

TEST(DaemonConfig, WhoNeedsTheDatabaseAloneNeedsNoSecretOfOthers) {
  const std::string secrets = R"([server]
tls-certificate = "${env:DAEMON_CONFIG_NOBODY}"
tls-key = "${file:/no/such}"
[sinks.hook]
type = "file"
path = "${file:/no/such}"
[relay.topics.t]
publishers = ["${env:DAEMON_CONFIG_NOBODY}", "hook"]
)";
  const auto storage_of = [](const std::string& text) {
    return parse_config_of("storage", text, "p.toml", no_environment.data()).storage;
  };
  EXPECT_THAT(refusal(storage + secrets), HasSubstr("'/no/such' cannot be read")) << "serve needs all";
  EXPECT_EQ(storage_of(storage + secrets).url, "sqlite:x.db");
  const auto refused = [&](const std::string& text) {
    try {
      (void)storage_of(text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(refused("[storage]\nurl = \"${file:/no/such}\"\n"),
              HasSubstr("storage.url is refused: the file '/no/such' cannot be read"));
  EXPECT_THAT(refused(storage + secrets + "batch-sise = 3\n"), EndsWith("did you mean batch-size?"));
  EXPECT_THAT(refused(storage + "[relay]\nlease-ms = 1000\nheartbeat-ms = 500\n"),
              HasSubstr("a third of lease-ms"))
      << "what has no reference is judged";
}

TEST(DaemonConfig, SaysAllThatIsWrongAtOnce) {
  EXPECT_THAT(refusal("[storag]\nurl = \"sqlite:x.db\"\n[server]\nmetrics = 1\ndashbord = true\n"),
              ::testing::StrEq("postrider: p.toml is refused for 4 reasons:\n"
                               "  p.toml, line 1: there is no table 'storag'. Hint: did you mean storage?\n"
                               "  p.toml, line 4: server.metrics cannot be '1': it must be true or false\n"
                               "  p.toml, line 5: there is no option 'dashbord' in [server]. Hint: did you "
                               "mean dashboard?\n"
                               "  p.toml: storage.url is refused: it is missing. Hint: write url = "
                               "\"sqlite:postrider.db\" or postgresql://… below [storage]"));
  EXPECT_THAT(refusal("[storage]\nurl = \"${file:/no/such}\"\n"), Not(HasSubstr("it is missing")));
  std::string many = storage;
  for (int i = 0; i < 25; ++i) many += "x" + std::to_string(i) + " = 1\n";
  EXPECT_THAT(refusal(many),
              AllOf(HasSubstr("line 22: "), Not(HasSubstr("line 23: ")), EndsWith("and 5 more")));
}

TEST(DaemonConfig, PrintsWhatItWouldRead) {
  const std::array<const char*, 2> environment{"POSTRIDER_STORAGE_POOL_SIZE=9", nullptr};
  const std::string text =
      storage + a_file + "[[outbox.routes]]\nsink = \"out\"\n[relay.topics.t]\npublishers = [\"out\"]\n";
  const ReadConfig read = parse_daemon_config(text, "p.toml", environment.data());
  const std::string printed = print_config(read.effective);
  EXPECT_THAT(printed,
              AllOf(HasSubstr("pool-size = 9  # from the environment"), HasSubstr("[[outbox.routes]]"),
                    HasSubstr("path = \"x.jsonl\"\n"), HasSubstr("keep = 0  # default")));
  const auto without_origin = [](std::string all) {
    for (const std::string_view origin : {"  # default", "  # from the environment"}) {
      for (std::size_t at = all.find(origin); at != std::string::npos; at = all.find(origin)) {
        all.erase(at, origin.size());
      }
    }
    return all;
  };
  const ReadConfig again = parse_daemon_config(printed, "printed", no_environment.data());
  EXPECT_EQ(without_origin(print_config(again.effective)), without_origin(printed));
}

TEST(DaemonConfig, SaysWhatHasChanged) {
  const auto effective = [](const std::string& more) {
    return parse_daemon_config(storage + more, "p.toml", no_environment.data()).effective;
  };
  EXPECT_TRUE(changed_options(effective(""), effective("")).empty());
  EXPECT_THAT(changed_options(effective("[relay]\nworkers = 3\n"), effective("[relay]\nworkers = 4\n")),
              ElementsAre("relay.workers"));
  const auto changed = changed_options(effective(""), effective(a_file));
  EXPECT_THAT(changed, ::testing::Contains("sinks.out.path"));
  EXPECT_THAT(changed_options(effective(a_file), effective("")), ::testing::Contains("sinks.out.path"));

  const test::TempDir folder;
  const std::string name = "[node]\nname = \"${file:" + folder.file("name") + "}\"\n";
  std::ofstream(folder.file("name")) << "one";
  const std::vector<Effective> before = effective(name);
  EXPECT_TRUE(changed_options(before, effective(name)).empty());
  std::ofstream(folder.file("name")) << "two";
  EXPECT_THAT(changed_options(before, effective(name)), ElementsAre("node.name"))
      << "also behind a reference";
}

}  // namespace
}  // namespace postrider::config
