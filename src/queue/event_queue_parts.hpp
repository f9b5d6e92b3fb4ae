// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "postrider/event_queue.hpp"
#include "storage/queue_store.hpp"
#include "storage/wake_hub.hpp"

namespace postrider::detail {

/// What EventQueue is made of; EventManager works on the same parts.
struct QueueParts {
  QueueParts(Storage& storage_in, QueueOptions options_in);

  /// In a transaction of its own. Throws for an event that there never was, and for one whose handlers are
  /// running on this thread.
  Settled settle(const Settlement& settlement);
  Settled finalize(const Settlement& settlement);

  Storage& storage;
  const QueueOptions options;
  QueueStore& store;
  /// Shared with the hooks of transactions, which may end after the queue.
  std::shared_ptr<WakeHub> hub;
};

}  // namespace postrider::detail
