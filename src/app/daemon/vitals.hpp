// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/sign_of_life.hpp"
#include "postrider/clock.hpp"

namespace postrider::http {
class Server;
}

namespace postrider::daemon {

class Engines;

/// Whether the program still does its work, as far as that lies with it: what systemd's watchdog is told. A
/// database or a broker that is away is no reason to be restarted; a loop that hangs is. One thread asks.
class Vitals {
 public:
  Vitals(http::Server& server, Engines& engines);
  ~Vitals();
  Vitals(const Vitals&) = delete;
  Vitals& operator=(const Vitals&) = delete;

  /// What has hung for longer than `patience`, empty when nothing has. Ask again and again: each call sends
  /// the HTTP threads a task, and the next ones see whether it was done.
  [[nodiscard]] std::string hanging(SteadyPoint now, Duration patience);

 private:
  http::Server& server_;
  Engines& engines_;
  /// Shared with a task that may run after this object.
  std::shared_ptr<SignOfLife> http_;
  std::shared_ptr<std::atomic<bool>> asked_;
};

}  // namespace postrider::daemon
