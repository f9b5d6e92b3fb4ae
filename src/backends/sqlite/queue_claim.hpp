// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "backends/sqlite/connection.hpp"
#include "backends/sqlite/queue_sql.hpp"
#include "storage/queue_store.hpp"

namespace postrider::sqlite {

/// What a store remembers between claims, so that everybody has a turn.
struct QueueTurn {
  std::optional<std::string> key{};  ///< the last key that was looked at; none: begin at the first
  bool odd_to_keys = false;          ///< which kind gets the odd one of an odd limit
};

/// Skips from key to key, from the one after `start` on, round once at most. Each look is one seek in the
/// index, however many rows a key has.
class KeyWalk {
 public:
  KeyWalk(Connection& connection, const QueueSql& sql, std::optional<std::string> start);

  /// Empty when each key has had its turn, or enough of them for one claim.
  [[nodiscard]] std::optional<std::string> next();
  /// The last key that `next` gave; before that, where it starts.
  [[nodiscard]] const std::optional<std::string>& at() const noexcept { return at_; }
  /// Enough for one claim, and the end was not reached.
  [[nodiscard]] bool more() const noexcept;

 private:
  [[nodiscard]] std::optional<std::string> following();

  Connection& connection_;
  const QueueSql& sql_;
  const std::optional<std::string> start_;
  std::optional<std::string> at_;
  bool wrapped_;
  bool done_ = false;
  std::size_t seen_ = 0;
  bool reached_end_ = false;
};

/// One claim. `run` works inside a transaction that holds the write lock: what it reads stays true until the
/// commit.
class QueueClaim {
 public:
  QueueClaim(Connection& connection, const QueueSql& sql, const QueueClaimRequest& request, std::int64_t now,
             QueueTurn turn);

  [[nodiscard]] QueueClaimResult run();
  /// All that `run` would take, when these are nothing but rows without a key that nobody has had before.
  /// Writes nothing, so that the write lock need not be held while rows are read and decoded.
  [[nodiscard]] std::optional<std::vector<QueuedEvent>> find_fresh();
  /// Claims what `find_fresh` of the same moment has found. False when somebody was faster with one of them:
  /// then the transaction is to be rolled back.
  [[nodiscard]] bool take_fresh(std::span<const QueuedEvent> fresh);
  /// Whether `run` would find anything. Writes nothing.
  [[nodiscard]] bool look();
  /// See QueueClaimResult.
  [[nodiscard]] bool more() const noexcept { return walk_.more(); }
  /// For the next claim.
  [[nodiscard]] QueueTurn turn() const;

 private:
  enum class Fate : std::uint8_t { take, quarantine, leave };
  /// A row that was found; written once its statement is at an end.
  struct Found {
    QueuedEvent event;
    Fate fate;
    std::string owner;  // of the claim that was abandoned
    bool abandoned;
  };
  /// The key that the walk is at, as long as its run may go on.
  struct Run {
    std::string key;
    std::int64_t after;  // id
    std::size_t taken;
  };

  void take_free(std::size_t limit);
  void take_ordered(std::size_t limit);
  void extend_run(std::size_t limit);

  [[nodiscard]] bool blocked(const Statement& row) const;
  [[nodiscard]] bool unwanted(const Statement& row) const;
  [[nodiscard]] Fate judge(const Statement& row) const;
  [[nodiscard]] Found read(const Statement& row, Fate fate);
  void write(std::vector<Found> found, std::vector<QueuedEvent>& taken);

  Connection& connection_;
  const QueueSql& sql_;
  const QueueClaimRequest& request_;
  const std::int64_t now_;
  const bool odd_to_keys_;
  KeyWalk walk_;
  std::optional<Run> run_;
  std::unordered_set<std::string_view> without_types_;
  std::size_t suspects_ = 0;
  // Apart, because the walk may go on when the free rows have left room, and a run is to stay together.
  std::vector<QueuedEvent> ordered_;
  std::vector<QueuedEvent> free_;
  std::vector<QueueId> quarantined_;
};

}  // namespace postrider::sqlite
