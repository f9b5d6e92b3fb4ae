// SPDX-License-Identifier: Apache-2.0
#include "app/cli/service_manager.hpp"

#include <systemd/sd-daemon.h>

#include <algorithm>
#include <utility>

namespace postrider::cli {
namespace {

/// As sd_notify(3) recommends, and one more in case a signal comes late.
constexpr int signs_per_period = 3;

}  // namespace

ServiceManager::ServiceManager() {
  std::uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) > 0)
    watchdog_ = Duration{static_cast<std::int64_t>(microseconds)};
}

void ServiceManager::status(const std::string& text) {
  if (text == last_) return;
  last_ = text;
  std::string line = text;  // a line break would begin another assignment
  std::replace(line.begin(), line.end(), '\n', ' ');
  sd_notify(0, ("STATUS=" + line).c_str());
}

void ServiceManager::ready() {
  if (!std::exchange(told_ready_, true)) sd_notify(0, "READY=1");
}

void ServiceManager::reloading(SteadyPoint now) const {
  if (!told_ready_) return;  // systemd takes a reload for the end of the start
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  sd_notify(0, ("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(micros)).c_str());
}

void ServiceManager::reloaded() const {
  if (told_ready_) sd_notify(0, "READY=1");
}

void ServiceManager::stopping() {
  sd_notify(0, "STOPPING=1");
}

void ServiceManager::alive(SteadyPoint now) {
  next_ = now + watchdog_ / signs_per_period;
  sd_notify(0, "WATCHDOG=1");
}

std::chrono::milliseconds ServiceManager::pause(std::chrono::milliseconds most) const noexcept {
  if (!watched()) return most;
  const auto sign = std::chrono::duration_cast<std::chrono::milliseconds>(watchdog_ / (2 * signs_per_period));
  return std::clamp(sign, std::chrono::milliseconds{1}, most);
}

}  // namespace postrider::cli
