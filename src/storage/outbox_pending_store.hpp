// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "postrider/outbox_admin.hpp"

namespace postrider {

/// What can be done to pending rows of the outbox; see OutboxAdmin.
enum class OutboxAction : std::uint8_t { requeue, cancel };

/// Which pending rows are meant.
struct PendingRows {
  OutboxFilter filter{};
  /// Only those with which this can be done.
  std::optional<OutboxAction> action{};
  /// For `requeue`, when it began: rows that nodes have, but that became available later, are left alone. So
  /// what was requeued and is taken by a node at once is not taken from it again.
  std::optional<TimePoint> begun{};
};

/// What operators do with rows that are not finished. Thread-safe. They are found by
/// OutboxSearchStore::search.
class OutboxPendingStore {
 public:
  virtual ~OutboxPendingStore() = default;

  /// The time by which rows are judged.
  virtual TimePoint now() = 0;
  /// How many `apply` would find.
  virtual std::int64_t count(const PendingRows& rows) = 0;
  /// One transaction: does it to those of these rows, at most 1000, that are pending and match what else
  /// `rows` says; its `ids` are not looked at. Rows that are locked are passed over. Returns how many.
  ///
  /// Each one's token is raised: what anybody has claimed before can no longer be finished, renewed or
  /// released. Order per key is kept although the node that has a row may still run it, and what it has of
  /// the key behind it: a requeued one stays leased for as long as any of these is, and they lose their
  /// claims with it; behind a cancelled one the first row of the key that nobody has is leased in its place,
  /// to nobody.
  virtual std::int64_t apply(const PendingRows& rows, std::span<const EventId> ids,
                             std::string_view reason) = 0;
};

}  // namespace postrider
