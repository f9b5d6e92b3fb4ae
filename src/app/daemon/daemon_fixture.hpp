// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/daemon/daemon.hpp"
#include "app/http/socket_client_fixture.hpp"
#include "support/backend.hpp"
#include "support/eventually.hpp"
#include "support/temp_dir.hpp"

namespace postrider::daemon {

/// What a daemon has said to its log.
class LogLines {
 public:
  [[nodiscard]] LogCallback callback() {
    return [this](LogLevel, std::string_view line) {
      const std::scoped_lock lock(mutex_);
      lines_.emplace_back(line);
    };
  }
  /// How many lines have this text.
  [[nodiscard]] std::ptrdiff_t with(std::string_view text) const {
    const std::scoped_lock lock(mutex_);
    return std::count_if(lines_.begin(), lines_.end(),
                         [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

inline config::DaemonConfig parsed_config(const std::string& text) {
  static constexpr std::array<const char*, 1> no_environment{nullptr};
  return config::parse_daemon_config(text, "test.toml", no_environment.data()).config;
}

inline std::unique_ptr<Daemon> make_daemon(
    const std::string& text, LogCallback log = [](LogLevel, std::string_view) {}) {
  return std::make_unique<Daemon>(parsed_config(text), std::move(log));
}

inline test::HttpAnswer ask(const Daemon& daemon, std::string_view method, const std::string& target,
                            const std::string& headers = {}) {
  return test::SocketClient(daemon.port()).ask(method, target, {}, headers).value();
}

/// Daemons on a database of the test's own, with the file sinks "out" and "other".
class DaemonFixture : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) database_ = std::make_unique<test::TestDatabase>(backend());
  }
  std::string config(const std::string& more) const {
    return "[storage]\nurl = \"" + database_->url() + "\"\nschema = \"" + database_->options().schema.str() +
           "\"\n[server]\nlisten = \"127.0.0.1:0\"\n" + file_sink("out", "out.jsonl") +
           file_sink("other", "other.jsonl") + more;
  }
  /// An outbox that looks often, and gives all events to these sinks. "broken" is away until somebody makes
  /// the folder "missing".
  std::string config_with_routes(std::initializer_list<const char*> sinks) const {
    std::string more = file_sink("broken", "missing/broken.jsonl") + "[outbox]\npoller-interval-ms = 20\n";
    for (const char* const sink : sinks) more += std::string("[[outbox.routes]]\nsink = \"") + sink + "\"\n";
    return config(more);
  }
  std::string file_sink(const std::string& name, const std::string& file) const {
    return "[sinks." + name + "]\ntype = \"file\"\npath = \"" + folder_.file(file) + "\"\n";
  }
  /// As a process would that only publishes.
  void publish(const std::vector<Event>& events) {
    Transaction tx = database_->storage().begin();
    Outbox(database_->storage()).publish(tx, events);
    tx.commit();
  }
  std::multiset<std::string> ids_in(const std::string& file) const {
    std::ifstream in(folder_.file(file));
    std::multiset<std::string> ids;
    for (std::string line; std::getline(in, line);)
      ids.insert(boost::json::parse(line).at("id").as_string().c_str());
    return ids;
  }
  test::TempDir folder_;
  std::unique_ptr<test::TestDatabase> database_;
};

}  // namespace postrider::daemon
