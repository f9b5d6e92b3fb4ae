// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "backends/mariadb/link.hpp"
#include "postrider/clock.hpp"
#include "postrider/error.hpp"

namespace postrider::mariadb {

/// What innodb_lock_wait_timeout takes: whole seconds, one at least.
[[nodiscard]] inline std::string lock_wait_seconds(Duration time) {
  return std::to_string(std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(time).count()));
}

/// Locks are waited for so long, instead of the server's usual 50 seconds, as long as this lives.
class ShortLockWait {
 public:
  ShortLockWait(Link& link, Duration time) : link_(link) {
    link_.run("SET SESSION innodb_lock_wait_timeout = " + lock_wait_seconds(time), {}, {});
  }
  ~ShortLockWait() {
    try {
      link_.run("SET SESSION innodb_lock_wait_timeout = " + link_.usual_lock_wait(), {}, {});
    } catch (const Error&) {  // the connection is lost, and the setting with it
    }
  }
  ShortLockWait(const ShortLockWait&) = delete;
  ShortLockWait& operator=(const ShortLockWait&) = delete;

 private:
  Link& link_;
};

}  // namespace postrider::mariadb
