// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

#include "backends/sqlite/queue_claim.hpp"
#include "backends/sqlite/queue_sql.hpp"
#include "backends/sqlite/writer.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "storage/pool.hpp"
#include "storage/queue_store.hpp"

namespace postrider::sqlite {

/// The queue on SQLite. There is one writer, so whoever writes to the log writes in commit order: numbers are
/// given by the table itself, also in users' transactions.
class SqliteQueueStore final : public QueueStore {
 public:
  SqliteQueueStore(const Identifier& schema, std::string storage_name, Clock& clock, Writer& writer,
                   ConnectionPool& readers);

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
  void sequence_log() override {}
  void check_schema() override;

 private:
  /// The way of most claims, see QueueClaim::find_fresh. Empty when the rows need a closer look.
  [[nodiscard]] std::optional<QueueClaimResult> claim_fresh(const QueueClaimRequest& request);
  /// The result when there is nothing to claim. Takes no lock.
  [[nodiscard]] std::optional<QueueClaimResult> look_in_vain(const QueueClaimRequest& request);
  [[nodiscard]] QueueTurn turn() const POSTRIDER_EXCLUDES(mutex_);
  void set_turn(QueueTurn turn) POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] InsertedRow insert_row(Connection& connection, Statement& statement, const NewQueueRow& row,
                                       std::int64_t now);
  /// Lines about those that failed and are still held; before their rows are changed.
  void log_attempts(Connection& connection, std::span<const Settlement> settlements, std::int64_t now);
  /// Finalises these, at most `block_size`, with one statement per table; `settlements` and `answers` have
  /// the same places.
  void finalize_block(Connection& connection, std::span<const Settlement> settlements,
                      std::span<const std::size_t> places, std::int64_t now, std::vector<Settled>& answers);
  [[nodiscard]] bool holds(Connection& connection, const Claim& claim);
  [[nodiscard]] Settled settle_one(Connection& connection, const Settlement& settlement, std::int64_t now);
  /// Why a settlement changed nothing.
  [[nodiscard]] Settled why_not(Connection& connection, const Settlement& settlement);
  [[nodiscard]] bool save(Connection& connection, const Claim& claim, std::span<const HandlerResult> results);
  void store(Connection& connection, QueueId id, std::span<const HandlerResult> results, std::int64_t now);
  [[nodiscard]] std::int64_t now() const;

  const Identifier schema_;
  const std::string storage_name_;
  const QueueSql sql_;
  Clock& clock_;
  Writer& writer_;
  ConnectionPool& readers_;
  const std::string file_;  // absolute, to recognise a transaction on another file
  std::atomic<bool> more_{false};
  mutable Mutex mutex_;
  QueueTurn turn_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::sqlite
