// SPDX-License-Identifier: Apache-2.0
// Tasks that are done once for an event, and the notes about them, which stand beside the handlers' results.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "postrider/error.hpp"
#include "storage/queue_store.hpp"

namespace postrider {

/// The claim has gone to somebody else meanwhile.
class LostClaim final : public Error {
 public:
  LostClaim()
      : Error(ErrorCode::conflict, "cannot go on with this event",
              "its claim has gone to another worker meanwhile", "let this exception through") {}
};

/// Under which a task is noted. `owner` is the handler, or nothing. Throws for a name that cannot be stored.
[[nodiscard]] std::string task_id(std::string_view owner, std::string_view name);

/// What the database has about this handler (or task), if that is a success.
[[nodiscard]] std::optional<HandlerResult> stored_success(QueueStore& store, QueueId event,
                                                          std::string_view handler);
/// The same as seen by the transaction, which may have noted it itself.
[[nodiscard]] bool success_in(Tx& tx, QueueStore& store, QueueId event, std::string_view handler);

/// With the transaction, or in one of its own. Throws LostClaim.
void note_task(Tx* tx, QueueStore& store, const Claim& claim, std::string_view id);

/// While a manager runs the handlers of an event on this thread: it writes the event's result itself, and
/// nobody else may, or what its other handlers say would be lost.
class HandledByManager {
 public:
  HandledByManager(const QueueStore& store, const Claim& claim) noexcept;
  ~HandledByManager();
  HandledByManager(const HandledByManager&) = delete;
  HandledByManager& operator=(const HandledByManager&) = delete;

  /// Throws Error(invalid_argument) when `claim` is the one that is being handled here.
  static void refuse(const QueueStore& store, const Claim& claim);

 private:
  const QueueStore& store_;
  const Claim& claim_;
  const HandledByManager* const before_;
};

}  // namespace postrider
