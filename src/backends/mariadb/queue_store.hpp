// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/mariadb/queue_sql.hpp"
#include "backends/mariadb/work.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/identifier.hpp"
#include "storage/claim_cursor.hpp"
#include "storage/queue_store.hpp"

namespace postrider::mariadb {

/// What one claim leaves for the next ones. Thread-safe.
class ClaimMemory {
 public:
  /// `exact`: every scan is a full one, whatever it costs. For storages with a clock of their own, which are
  /// tests: on a busy machine every scan looks expensive at times.
  explicit ClaimMemory(bool exact) noexcept : exact_(exact) {}

  struct Plan {
    ClaimCursor::Scan scan{};
    std::optional<std::string> last_key{};  ///< behind which the walk over the keys begins
    bool odd_to_ordered = true;             ///< which kind gets the odd one of the limit
  };
  [[nodiscard]] Plan plan(SteadyPoint now) POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] bool full_scan_allowed(SteadyPoint now) POSTRIDER_EXCLUDES(mutex_);
  void full_scan_took(Duration cost, SteadyPoint now) POSTRIDER_EXCLUDES(mutex_);
  /// After the commit: `last` has the last row claimed of each level.
  void claimed(const ClaimCursor::Positions& last, std::optional<std::string> last_key)
      POSTRIDER_EXCLUDES(mutex_);

 private:
  const bool exact_;
  Mutex mutex_;
  ClaimCursor cursor_ POSTRIDER_GUARDED_BY(mutex_);
  // Of the last full scans. The least of them counts: on a busy machine any scan may take long, but if all of
  // them do there is something to walk over.
  std::array<Duration, 8> costs_ POSTRIDER_GUARDED_BY(mutex_){};
  std::size_t next_cost_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::optional<std::string> last_key_ POSTRIDER_GUARDED_BY(mutex_);
  bool odd_to_ordered_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

/// The queue on MariaDB. Thread-safe. Files: queue_store (insertion, leases, states), queue_claim,
/// queue_settle (and the log's numbers); the statements: queue_sql. Work that is a transaction of its own is
/// done again after deadlocks and after a broken connection was found.
///
/// Locks: claims wait for nobody. Settlements wait for rows of the queue first; whoever holds the row of
/// event_log_head (until the commit, so that numbers are in commit order) wants no lock of the queue any
/// more.
class MariadbQueueStore final : public QueueStore {
 public:
  /// `clock` may be null: then the database's counts.
  MariadbQueueStore(const Work& work, const Identifier& schema, Clock* clock, std::string name);

  std::vector<InsertedRow> insert(Tx& tx, std::span<const NewQueueRow> rows) override;
  QueueClaimResult claim(const QueueClaimRequest& request) override;
  std::vector<QueueId> renew(std::span<const Claim> held, Duration lease) override;
  std::vector<Settled> settle(std::span<const Settlement> settlements) override;
  Settled settle(Tx& tx, const Settlement& settlement) override;
  std::vector<EventState> load_states(std::span<const QueueId> ids) override;
  bool save_states(const Claim& claim, std::span<const HandlerResult> results) override;
  bool save_states(Tx& tx, const Claim& claim, std::span<const HandlerResult> results) override;
  std::vector<std::string> done_in(Tx& tx, QueueId id) override;
  std::size_t clean_states(std::size_t limit) override;
  void sequence_log() override;
  void check_schema() override;

 private:
  /// NULL unless the storage has a clock of its own.
  [[nodiscard]] Value now_or_null() const;
  /// False when the claim is stale. Otherwise the row is locked.
  [[nodiscard]] static bool lock_claim(Link& link, const ListSql& lock, const Claim& claim);
  /// Waits for a second at most.
  [[nodiscard]] bool lock_idle_claim(Link& link, const Claim& claim) const;
  void write_states(Link& link, QueueId id, std::span<const HandlerResult> results) const;

  const Work& work_;
  Identifier schema_;
  Clock* clock_;
  std::string name_;
  QueueSql sql_;
  ClaimMemory memory_;
  std::atomic<SteadyPoint> exactly_until_{SteadyPoint{}};  // see Settling::How
};

}  // namespace postrider::mariadb
