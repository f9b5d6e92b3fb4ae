// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/vitals.hpp"

#include "app/daemon/engines.hpp"
#include "app/http/server.hpp"

namespace postrider::daemon {

Vitals::Vitals(http::Server& server, Engines& engines)
    : server_(server),
      engines_(engines),
      http_(std::make_shared<SignOfLife>()),
      asked_(std::make_shared<std::atomic<bool>>(false)) {}

Vitals::~Vitals() = default;

std::string Vitals::hanging(SteadyPoint now, Duration patience) {
  if (!asked_->exchange(true)) {
    http_->busy(now);
    server_.post([http = http_, asked = asked_] {
      http->elsewhere();
      *asked = false;
    });
  }
  if (http_->overdue(now) > patience) return "the HTTP server";
  if (engines_.relay() != nullptr && engines_.relay()->overdue() > patience) return "the relay";
  if (engines_.outbox() != nullptr && engines_.outbox()->overdue() > patience) return "the outbox";
  return {};
}

}  // namespace postrider::daemon
