// SPDX-License-Identifier: Apache-2.0
// The program `postrider eventlog`, as a process that tests may kill.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <charconv>
#include <csignal>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/http/socket_client_fixture.hpp"
#include "support/backend.hpp"
#include "support/child_process.hpp"
#include "support/places.hpp"

namespace postrider::test {

/// The Event Log API on a database, on the same port for all of its lives. Used by one thread.
class ApiProcess {
 public:
  explicit ApiProcess(const TestDatabase& database, std::vector<std::string> extra = {})
      : database_(database), extra_(std::move(extra)) {}

  /// Returns when it listens.
  void start() {
    std::vector<std::string> arguments{
        test::program_path(), "eventlog",      "--listen", "127.0.0.1:" + std::to_string(port_),
        "--storage",          database_.url(), "--schema", database_.options().schema.str()};
    arguments.insert(arguments.end(), extra_.begin(), extra_.end());
    child_.emplace(arguments);
    const std::string line = child_->read_line().value_or("");
    const std::size_t at = line.find("127.0.0.1:");  // the first: the storage may have one, too
    if (at == std::string::npos) throw std::runtime_error("the API has not started: " + line);
    std::from_chars(line.data() + at + 10, line.data() + line.size(), port_);
  }
  /// SIGTERM, and its end.
  void stop() {
    child_->signal(SIGTERM);
    EXPECT_TRUE(child_->wait().value().ok());
    child_.reset();
  }
  void kill() {
    EXPECT_TRUE(child_->kill().killed());
    child_.reset();
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  /// How often each "details" is stored, asked through the API, page by page.
  [[nodiscard]] std::map<std::string, int> details() const {
    std::map<std::string, int> found;
    SocketClient client(port_);
    std::string cursor;
    for (;;) {
      const auto answer =
          client.ask("GET", "/v1/events?limit=1000" + (cursor.empty() ? "" : "&cursor=" + cursor));
      if (!answer.has_value() || answer->status != 200) throw std::runtime_error("the API does not answer");
      const boost::json::value page = boost::json::parse(answer->body);
      for (const auto& event : page.at("events").as_array()) {
        ++found[std::string(event.at("details").as_string().c_str())];
      }
      if (page.at("nextCursor").is_null()) return found;
      cursor = page.at("nextCursor").as_string().c_str();
    }
  }

 private:
  const TestDatabase& database_;
  const std::vector<std::string> extra_;
  std::uint16_t port_ = 0;
  std::optional<ChildProcess> child_;
};

}  // namespace postrider::test
