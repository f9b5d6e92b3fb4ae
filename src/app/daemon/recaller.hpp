// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

#include "app/daemon/parked_sinks.hpp"
#include "postrider/log.hpp"
#include "postrider/storage.hpp"

namespace postrider::daemon {

/// Makes events due that wait for a sink which takes events again, see Parking: in small transactions, on a
/// thread of its own. Known by their last error, so those of earlier processes and of other nodes are among
/// them; what a node has, and what was published for a later time, is not. Order per key is kept, no attempt
/// is counted. When the database fails, it is done again.
class Recaller {
 public:
  /// `look` brings what is due to the workers; called after each transaction. It may throw, as the database
  /// does. `storage` and `parked` outlive it.
  Recaller(Storage& storage, ParkedSinks& parked, std::function<void()> look, LogCallback log);
  ~Recaller() { stop(); }
  Recaller(const Recaller&) = delete;
  Recaller& operator=(const Recaller&) = delete;

  void start();
  /// After the transaction that is under way.
  void stop();

 private:
  void run() noexcept;
  Parking::RecallEnd recall(const ParkedSinks::Recall& recall);

  Storage& storage_;
  ParkedSinks& parked_;
  const std::function<void()> look_;
  const LogCallback log_;
  bool failing_ = false;  // the thread's own
  std::thread thread_;
};

}  // namespace postrider::daemon
