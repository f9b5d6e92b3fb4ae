// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace postrider {

/// Something that runs in the background. `start` and `stop` may be called in any order, any number of times,
/// from any thread; a stopped service can be started again. Destroying a running service stops it.
class Service {
 public:
  virtual ~Service() = default;
  virtual void start() = 0;
  virtual void stop() = 0;
  [[nodiscard]] virtual bool running() const noexcept = 0;
};

}  // namespace postrider
