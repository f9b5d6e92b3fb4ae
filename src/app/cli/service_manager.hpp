// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "postrider/clock.hpp"

namespace postrider::cli {

/// Tells systemd how things stand (see sd_notify(3)); nothing happens when it did not start us. One thread.
class ServiceManager {
 public:
  ServiceManager();

  void status(const std::string& text);
  void ready();
  /// Around reading the configuration again.
  void reloading(SteadyPoint now) const;
  void reloaded() const;
  static void stopping();
  /// Whether the watchdog wants to hear of us about now.
  [[nodiscard]] bool wants_sign(SteadyPoint now) const noexcept { return watched() && now >= next_; }
  void alive(SteadyPoint now);
  /// How long one may sleep between two looks: `most`, or less for a watchdog that is quicker.
  [[nodiscard]] std::chrono::milliseconds pause(std::chrono::milliseconds most) const noexcept;

  [[nodiscard]] bool watched() const noexcept { return watchdog_ > Duration::zero(); }
  /// How long something may hang before we fall silent: systemd waits for its own time on top of it.
  [[nodiscard]] Duration patience() const noexcept { return watchdog_ / 2; }

 private:
  Duration watchdog_{};
  SteadyPoint next_{};
  std::string last_;
  bool told_ready_ = false;
};

}  // namespace postrider::cli
