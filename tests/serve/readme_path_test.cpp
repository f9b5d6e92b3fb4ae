// SPDX-License-Identifier: Apache-2.0
// The way that the README shows: the daemon on PostgreSQL, an event published with SQL, kcat reads it, curl
// finds it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sinks/kafka/kafka_broker.hpp"
#include "support/backend.hpp"
#include "support/child_process.hpp"
#include "support/places.hpp"

namespace postrider::test {
namespace {

class ReadmePath : public BackendTest {};

TEST_P(ReadmePath, FromPostgresToKafka) {
  if (IsSkipped() || HasFatalFailure()) return;
  KafkaBroker broker;
  TestDatabase database(backend());
  const std::string topic = broker.create_topic(1);
  const std::string schema = database.options().schema.str();
  // The file as it is shown; only the addresses are this machine's.
  ChildProcess daemon({test::program_path(), "serve", "-c", test::source_file("examples/serve/kafka.toml")},
                      {{"POSTRIDER_STORAGE_URL", database.url()},
                       {"POSTRIDER_STORAGE_SCHEMA", schema},
                       {"POSTRIDER_SERVER_LISTEN", "127.0.0.1:0"},
                       {"POSTRIDER_SINKS_KAFKA_BROKERS", broker.address()},
                       {"POSTRIDER_SINKS_KAFKA_TOPIC", topic}});
  const std::string first = daemon.read_line().value_or("");
  const std::size_t address = first.find("http://127.0.0.1:");
  ASSERT_NE(address, std::string::npos) << first;
  const std::string site = first.substr(address, first.find_first_of(" ,/", address + 7) - address);
  ASSERT_TRUE(daemon.read_until("postrider: ready"));

  Transaction tx = database.storage().begin();
  tx.execute("select " + schema + R"(.publish('OrderPlaced', '{"id":1}'))");
  tx.commit();

  ChildProcess kcat({"/usr/bin/kcat", "-C", "-q", "-c", "1", "-o", "beginning", "-b", broker.address(), "-t",
                     topic, "-f", "%s %h\n"});
  const std::optional<std::string> line = kcat.read_line();
  ASSERT_TRUE(line.has_value());
  EXPECT_THAT(*line, ::testing::StartsWith(R"({"id":1} )"));
  EXPECT_THAT(*line, ::testing::HasSubstr("ce_type=OrderPlaced"));

  ChildProcess curl({"/usr/bin/curl", "-s", "-w", "\\n", site + "/api/outbox/events"});
  const std::optional<std::string> events = curl.read_line();
  ASSERT_TRUE(events.has_value());
  EXPECT_THAT(*events, ::testing::HasSubstr(R"("type":"OrderPlaced")"));
  ChildProcess page({"/usr/bin/curl", "-s", "-o", "/dev/null", "-w", "%{http_code}\n", site + "/ui/events"});
  EXPECT_EQ(page.read_line(), "200");
}

INSTANTIATE_TEST_SUITE_P(Backends, ReadmePath, ::testing::Values("postgres"),
                         [](const auto& chosen) { return chosen.param; });

}  // namespace
}  // namespace postrider::test
