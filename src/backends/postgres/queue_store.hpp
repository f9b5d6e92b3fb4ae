// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/queue_sql.hpp"
#include "postrider/detail/sync.hpp"
#include "storage/claim_cursor.hpp"
#include "storage/queue_store.hpp"

namespace postrider::postgres {

/// What one claim leaves for the next ones. Thread-safe.
class ClaimMemory {
 public:
  /// `exact`: every scan is a full one, whatever it costs. For storages with a clock of their own, which are
  /// tests: on a busy machine every scan looks expensive at times.
  explicit ClaimMemory(bool exact) noexcept : exact_(exact) {}

  struct Plan {
    ClaimCursor::Scan scan{};
    bool look_for_ordered = true;  ///< false: to find out whether there is an ordered row costs too much now
    bool expect_ordered = false;   ///< the last look found some
    bool odd_to_ordered = true;    ///< which kind gets the odd one of the limit; they take turns
  };
  [[nodiscard]] Plan plan(SteadyPoint now) POSTRIDER_EXCLUDES(mutex_);

  [[nodiscard]] bool full_scan_allowed(SteadyPoint now) POSTRIDER_EXCLUDES(mutex_);
  /// `cost` is there when the scan was a full one and could be measured.
  void scanned(const ClaimCursor::Positions& last, std::optional<Duration> cost, SteadyPoint now)
      POSTRIDER_EXCLUDES(mutex_);
  /// `cost`: of a look that found nothing to claim.
  void looked_for_ordered(bool found, std::optional<Duration> cost, SteadyPoint now)
      POSTRIDER_EXCLUDES(mutex_);

  /// The ordering key behind which the next walk begins; nothing: at the beginning.
  [[nodiscard]] std::optional<std::string> last_key() POSTRIDER_EXCLUDES(mutex_);
  void stopped_at(std::string key) POSTRIDER_EXCLUDES(mutex_);

 private:
  const bool exact_;
  Mutex mutex_;
  ClaimCursor cursor_ POSTRIDER_GUARDED_BY(mutex_);
  ScanThrottle ordered_ POSTRIDER_GUARDED_BY(mutex_);
  bool expect_ordered_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool odd_to_ordered_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::optional<std::string> last_key_ POSTRIDER_GUARDED_BY(mutex_);
};

/// The queue on PostgreSQL. Thread-safe. Files: queue_insert, queue_claim, queue_settle, queue_states; the
/// statements: queue_sql.
class PostgresQueueStore final : public QueueStore {
 public:
  /// Lends a connection of the pool to `work`.
  using WithConnection = std::function<void(const std::function<void(Connection&)>& work)>;

  PostgresQueueStore(const Identifier& schema, Clock* clock, WithConnection with_connection,
                     std::function<void()> check_schema);

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
  void check_schema() override { check_schema_(); }

  [[nodiscard]] const QueueSql& sql() const noexcept { return sql_; }

 private:
  /// Runs `work` in transactions of our own until one does not fail of contention, three at most.
  void run(const std::function<void(Connection&)>& work);
  /// Of events that crash again and again the newest lines stay.
  void trim_crashes(const QueueClaimResult& claimed);
  /// One statement in a transaction of its own.
  [[nodiscard]] Result run_one(const Statement& statement, const Params& params, std::string_view what);
  /// Fills in the answers for settlements that changed no row.
  void classify(std::span<const Settlement> settlements, std::vector<std::optional<Settled>>& answers);
  [[nodiscard]] std::optional<TimePoint> now() const;

  QueueSql sql_;
  Clock* clock_;
  WithConnection with_connection_;
  std::function<void()> check_schema_;
  ClaimMemory memory_;
};

}  // namespace postrider::postgres
