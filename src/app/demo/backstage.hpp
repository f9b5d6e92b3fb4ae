// SPDX-License-Identifier: Apache-2.0
// What runs behind the chapters: the daemon with everything switched on, and who it delivers to.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/config/daemon_config.hpp"
#include "app/daemon/daemon.hpp"
#include "app/demo/actor.hpp"
#include "app/demo/stage.hpp"
#include "postrider/storage.hpp"

namespace postrider::demo {

inline constexpr const char* wallet_topic = "wallet-events";

/// The mail server of the shop, which has its moods. Thread-safe.
struct MailServer {
  std::atomic<bool> away{false};
  std::atomic<std::uint64_t> delivered{0};
  std::atomic<std::uint64_t> refused_once{0};  ///< busy: tried again
  std::atomic<std::uint64_t> turned_away{0};   ///< while it was away
};

class Backstage {
 public:
  /// Makes the tables. Throws Error for an address that is refused.
  Backstage(const Stage& stage, const std::string& listen);

  /// Starts a relay node in a process of its own, which so leads first, and then the daemon. False when one
  /// of them does not start, or nobody waits for it any more. Throws what keeps the daemon from starting.
  [[nodiscard]] bool start(Stage& stage);
  void stop() { daemon_->stop(); }

  [[nodiscard]] MailServer& mail_server() noexcept { return *mail_server_; }
  /// Where to look at it all with a browser.
  [[nodiscard]] std::string dashboard() const;
  [[nodiscard]] std::string url() const { return daemon_->url(); }
  /// Kills the node that leads the relay.
  void kill_first_relay_node() { first_node_->end(SIGKILL); }

 private:
  std::shared_ptr<MailServer> mail_server_ = std::make_shared<MailServer>();
  std::optional<Actor> first_node_;
  std::unique_ptr<daemon::Daemon> daemon_;
};

}  // namespace postrider::demo
