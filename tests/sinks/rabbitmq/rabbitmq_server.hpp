// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {

/// rabbitmq-server as a process of our own, on free ports of loopback, with an epmd of its own. It takes
/// seconds to start, so the tests of a program share one.
class RabbitmqServer {
 public:
  /// Running, whatever the test before has done to it.
  [[nodiscard]] static RabbitmqServer& shared();

  RabbitmqServer();
  RabbitmqServer(const RabbitmqServer&) = delete;
  RabbitmqServer& operator=(const RabbitmqServer&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] int tls_port() const noexcept { return tls_port_; }
  [[nodiscard]] std::string url() const { return "amqp://127.0.0.1:" + std::to_string(port_); }
  /// That has signed its certificate, for "localhost".
  [[nodiscard]] std::string ca_file() const { return folder_.file("ca.pem"); }

  void start();
  void kill() { process_.reset(); }
  void freeze();
  void thaw();
  /// Runs rabbitmqctl. Throws std::runtime_error when it fails.
  void control(const std::vector<std::string>& arguments);

 private:
  [[nodiscard]] ChildProcess::Environment environment() const;
  void write_files() const;

  TempDir folder_;
  int port_;
  int tls_port_;
  int dist_port_;
  int epmd_port_;
  std::optional<ChildProcess> epmd_;
  std::optional<ChildProcess> process_;
  bool frozen_ = false;
};

}  // namespace postrider::test
