// SPDX-License-Identifier: Apache-2.0
// `postrider serve` as systemd would start it.
#pragma once

#include <charconv>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/http/socket_client_fixture.hpp"
#include "daemon/notify_socket.hpp"
#include "support/child_process.hpp"
#include "support/places.hpp"

namespace postrider::test {

/// A configuration in a folder of its own, and the process that has it. Used by one thread.
class ServeProcess {
 public:
  ServeProcess() = default;

  [[nodiscard]] std::string file(const std::string& name) const { return dir_.file(name); }
  [[nodiscard]] std::string config() const { return dir_.file("postrider.toml"); }
  [[nodiscard]] std::string sqlite() const { return "sqlite:" + dir_.file("events.db"); }
  void write_config(const std::string& text) const {
    std::ofstream out(config());
    out << "[server]\nlisten = \"127.0.0.1:0\"\n" << text;
  }
  /// `watchdog`: as WatchdogSec; 0 for none.
  void start(std::chrono::microseconds watchdog, ChildProcess::Environment environment = {}) {
    environment.emplace_back("NOTIFY_SOCKET", notify_.path());
    if (watchdog.count() > 0) environment.emplace_back("WATCHDOG_USEC", std::to_string(watchdog.count()));
    // Variables of the tests' servers would be taken for options.
    child_.emplace(std::vector<std::string>{"/usr/bin/env", "-u", "POSTRIDER_PG_BIN", "-u",
                                            "POSTRIDER_MARIADBD", "-u", "POSTRIDER_SKIP_SERVERS", "-u",
                                            "POSTRIDER_SEED", test::program_path(), "serve", "-c", config()},
                   environment);
    const std::string line = child_->read_line().value_or("");
    const std::size_t at = line.find("127.0.0.1:");
    ASSERT_NE(at, std::string::npos) << line;
    std::from_chars(line.data() + at + 10, line.data() + line.size(), port_);
  }
  [[nodiscard]] std::optional<HttpAnswer> get(const std::string& path, const std::string& head = {}) const {
    SocketClient client(port_);
    if (!client.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + head + "\r\n")) return std::nullopt;
    return client.answer();
  }
  [[nodiscard]] NotifySocket& notify() noexcept { return notify_; }
  [[nodiscard]] ChildProcess& child() { return child_.value(); }

 private:
  TempDir dir_;
  NotifySocket notify_;
  std::optional<ChildProcess> child_;
  std::uint16_t port_ = 0;
};

}  // namespace postrider::test
