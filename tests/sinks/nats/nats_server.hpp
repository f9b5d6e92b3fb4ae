// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nats/nats.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sinks/receiver.hpp"
#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {

/// A NATS server of our own, with JetStream on files.
class NatsServer {
 public:
  struct Settings {
    std::string config{};  ///< stands in its configuration file
    std::string admin{};   ///< "user:password@"
    bool jetstream = true;
    bool admin_tls = false;
  };
  NatsServer() : NatsServer(Settings{}) {}
  explicit NatsServer(Settings settings);
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  void kill() { process_->kill(); }
  void start();
  void freeze() { process_->freeze(); }
  void thaw() { process_->signal(SIGCONT); }

  /// As an administrator.
  void add_stream(const std::function<void(jsStreamConfig&)>& change);
  void update_stream(const std::function<void(jsStreamConfig&)>& change);
  void publish(const std::string& subject, const std::string& body);
  /// Everything in a stream, in its order, through a consumer; nothing when there is no such stream.
  [[nodiscard]] std::vector<Received> messages_of(const std::string& stream);
  /// Their subjects.
  [[nodiscard]] std::vector<std::string> subjects_of(const std::string& stream);

 private:
  using Visit = std::function<void(natsMsg&)>;
  struct Access;
  /// As an administrator, on a connection of its own.
  [[nodiscard]] Access open() const;
  void each(const std::string& stream, const Visit& visit) const;

  const std::uint16_t port_;
  TempDir folder_;
  const Settings settings_;
  std::optional<ChildProcess> process_;
};

}  // namespace postrider::test
