// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hiredis/hiredis.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {

/// A Redis of our own that loses nothing when it is killed.
class RedisServer {
 public:
  explicit RedisServer(std::vector<std::string> extra = {});

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::string socket() const { return folder_.file("redis.sock"); }
  void kill() { process_->kill(); }
  void start();
  void freeze() { process_->freeze(); }
  void thaw() { process_->signal(SIGCONT); }

  using Reply = std::unique_ptr<redisReply, void (*)(redisReply*)>;
  /// As an administrator, through hiredis. Throws std::runtime_error when there is no answer, or an error.
  Reply ask(const std::vector<std::string>& words);
  /// From now on `ask` is this user's.
  void log_in(std::string user, std::string password);

 private:
  redisContext& connected();

  const std::uint16_t port_;
  const std::vector<std::string> extra_;
  TempDir folder_;
  std::optional<ChildProcess> process_;
  std::unique_ptr<redisContext, void (*)(redisContext*)> context_{nullptr, redisFree};
  std::vector<std::string> login_;
};

}  // namespace postrider::test
