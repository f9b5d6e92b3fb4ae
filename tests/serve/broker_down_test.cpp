// SPDX-License-Identifier: Apache-2.0
// A broker dies: whoever asks why nothing moves is told which sink, where it is and what it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <fstream>
#include <thread>

#include "postrider/event_store.hpp"
#include "sinks/kafka/kafka_broker.hpp"
#include "support/backend.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/places.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
namespace json = boost::json;

class BrokerDown : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend());
    const std::string topic = broker_.create_topic(1);
    const std::string path = folder_.file("p.toml");
    std::ofstream(path)
        << "[storage]\nurl = \"" << database_->url() << "\"\nschema = \"" << database_->options().schema.str()
        << "\"\n[server]\nlisten = \"127.0.0.1:0\"\n[sinks.orders]\ntype = \"kafka\"\nbrokers = \""
        << broker_.address() << "\"\ntopic = \"" << topic
        << "\"\ntimeout-ms = 1000\n[relay.topics.all]\npublishers = [\"orders\"]\n";
    daemon_.emplace(std::vector<std::string>{test::program_path(), "serve", "-c", path});
    const std::string first = daemon_->read_line().value_or("");
    const std::size_t address = first.find("http://127.0.0.1:");
    ASSERT_NE(address, std::string::npos) << first;
    site_ = first.substr(address, first.find_first_of(" ,/", address + 7) - address);
    ASSERT_TRUE(daemon_->read_until("postrider: ready"));
  }
  [[nodiscard]] json::value get(const std::string& path) const {
    ChildProcess curl({"/usr/bin/curl", "-s", "-m", "20", "-w", "\\n", site_ + path});
    json::error_code error;
    json::value value = json::parse(curl.read_line().value_or(""), error);
    return error ? json::value(json::object()) : value;
  }
  [[nodiscard]] std::string stuck() const {
    const json::value overview = get("/api/overview");
    const json::value* const text = overview.as_object().if_contains("stuck");
    return text == nullptr ? std::string() : std::string(text->as_string());
  }
  [[nodiscard]] std::string status_line() const {
    ChildProcess status({test::program_path(), "status"},
                        {{"POSTRIDER_STORAGE_URL", database_->url()},
                         {"POSTRIDER_STORAGE_SCHEMA", database_->options().schema.str()}});
    return status.read_until("stuck").value_or("");
  }

  KafkaBroker broker_;
  TempDir folder_;
  std::optional<TestDatabase> database_;
  std::optional<ChildProcess> daemon_;
  std::string site_;
};

TEST_P(BrokerDown, IsNamedUntilItIsBack) {
  if (IsSkipped() || HasFatalFailure()) return;
  broker_.kill();
  EventStore store(database_->storage());
  for (int i = 0; i < 3; ++i) store.append({AppendEvent::builder("Placed").data("{}").build()});
  const std::string sink = "sink orders (kafka): Kafka at " + broker_.address();
  std::string line;
  ASSERT_TRUE(eventually(
      [&] {
        line = stuck();
        return line.starts_with(sink) && line.find("3 events wait") != std::string::npos;
      },
      60s))
      << line;
  EXPECT_THAT(line, HasSubstr("refused"));
  const json::value ready = get("/readyz?verbose");
  EXPECT_EQ(ready.at("sinks").at(0).at("name"), "orders");
  EXPECT_EQ(ready.at("sinks").at(0).at("type"), "kafka");
  EXPECT_THAT(std::string(ready.at("sinks").at(0).at("lastError").as_string()), HasSubstr(broker_.address()));
  EXPECT_THAT(status_line(),
              AllOf(HasSubstr("sink orders: "), HasSubstr(broker_.address()), HasSubstr("3 events wait")))
      << "the same from another process";
  broker_.start();
  EXPECT_TRUE(eventually([&] { return stuck() == "all is moving"; }, 60s)) << stuck();
  EXPECT_EQ(get("/readyz?verbose").at("sinks").at(0).at("lastError"), nullptr);
  EXPECT_THAT(status_line(), HasSubstr("all is moving"));
}

INSTANTIATE_TEST_SUITE_P(Backends, BrokerDown, ::testing::Values("postgres"),
                         [](const auto& chosen) { return chosen.param; });

}  // namespace
}  // namespace postrider::test
