// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/postgres/connection.hpp"
#include "storage/outbox_store.hpp"

namespace postrider::postgres {

/// The texts of the outbox's statements for one schema. `now` is in each a parameter that falls back to
/// statement_timestamp(): fresh for every statement, yet stable within it, so that an index condition can use
/// it.
struct OutboxSql {
  explicit OutboxSql(const Identifier& schema);

  std::string table;
  std::string attempts;  ///< the table outbox_attempt
  Statement insert_one;
  Statement insert_many;
  Statement any_ordered_due;
  Statement claim_unless_ordered;
  Statement claim_unordered;
  Statement unordered_share;
  Statement heads;
  Statement followers;
  Statement take;
  Statement defer;
  Statement renew;
  Statement done;
  Statement done_each;
  Statement retry;
  Statement later;
  Statement dead;
  Statement trim_attempts;
  Statement release;
  Statement predecessors;
};

/// The outbox on PostgreSQL. Thread-safe. Files: outbox_insert, outbox_claim, ordered_claim, outbox_complete;
/// the statements: outbox_sql.
class PostgresOutboxStore final : public OutboxStore {
 public:
  /// Lends a connection of the pool to `work`.
  using WithConnection = std::function<void(const std::function<void(Connection&)>& work)>;

  PostgresOutboxStore(const Identifier& schema, Clock* clock, WithConnection with_connection,
                      std::function<void()> check_schema);

  void insert(Tx& tx, std::string_view owner, std::span<const NewOutboxRow> rows) override;
  std::vector<ClaimedEvent> claim(const ClaimRequest& request) override;
  std::vector<EventId> renew(std::span<const LeaseRef> held, Duration lease) override;
  std::size_t complete(std::span<const Completion> results) override;
  std::vector<EventId> predecessors(std::string_view key, const EventId& id, std::size_t limit) override;
  void check_schema() override { check_schema_(); }

  [[nodiscard]] const OutboxSql& sql() const noexcept { return sql_; }

 private:
  void insert_through_text(Tx& tx, std::string_view owner, std::span<const NewOutboxRow> rows);
  /// One round trip when no ordered row is due; nothing when one is.
  [[nodiscard]] std::optional<std::vector<ClaimedEvent>> claim_without_order(Connection& connection,
                                                                             const ClaimRequest& request);
  /// Runs `work` in transactions of our own until one does not fail of contention, three at most.
  void run(const std::function<void(Connection&)>& work);
  [[nodiscard]] std::optional<TimePoint> now() const;

  OutboxSql sql_;
  Clock* clock_;
  WithConnection with_connection_;
  std::function<void()> check_schema_;
  /// Whether the last claim saw due ordered rows: then the next one begins with them. Only a hint.
  std::atomic<bool> ordered_work_{false};
};

/// Begins a pipeline that is a transaction of our own, with the planner's settings.
void begin_worker(Pipeline& pipeline);

/// Rolls back when an exception leaves its scope, so that the connection can go back to the pool.
class RollbackGuard {
 public:
  explicit RollbackGuard(Connection& connection) noexcept : connection_(connection) {}
  ~RollbackGuard() { connection_.rollback(); }
  RollbackGuard(const RollbackGuard&) = delete;
  RollbackGuard& operator=(const RollbackGuard&) = delete;

 private:
  Connection& connection_;
};

}  // namespace postrider::postgres
