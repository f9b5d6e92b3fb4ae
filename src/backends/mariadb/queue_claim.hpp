// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/mariadb/link.hpp"
#include "backends/mariadb/queue_attempts.hpp"
#include "backends/mariadb/queue_store.hpp"

namespace postrider::mariadb {

/// One claim, inside one transaction. Used once. Nobody waits for a lock here.
///
/// Rows without a key: a look without locks finds where the first claimable row of each level is, then rows
/// are locked from there on, past those that others have locked. So nothing is locked on the way through
/// leased rows and through the remains of deleted ones.
///
/// Rows with a key: heads are found without locks, too, and then exactly these rows are locked. A key belongs
/// to whoever holds the lock of its head; the rows behind it are read and locked after that.
class QueueClaimer {
 public:
  static constexpr std::size_t most_keys = 2'000;  ///< that one claim looks at

  /// `now` in microseconds.
  QueueClaimer(Link& link, const QueueSql& sql, const QueueClaimRequest& request, std::int64_t now,
               ClaimMemory& memory);

  void run();
  /// To be told to the memory once the transaction is committed.
  [[nodiscard]] const ClaimCursor::Positions& last_claimed() const noexcept { return last_claimed_; }
  [[nodiscard]] const std::optional<std::string>& last_key() const noexcept { return last_key_; }
  [[nodiscard]] QueueClaimResult result();

 private:
  /// A row that this transaction has locked.
  struct Row {
    std::int64_t id = 0;
    std::int64_t available_at = 0;
    bool abandoned = false;
    std::string owner{};  // the last one
    Token token{};        // the last one's
    QueuedEvent event{};  // as the claim will leave it
  };
  using Rows = std::unordered_map<std::int64_t, Row>;
  struct Head {
    std::string key;
    std::int64_t id;
    bool eligible;
  };
  /// A key whose head we hold locked.
  struct KeyRun {
    std::string key;
    std::int64_t last_id = 0;  // the last row that was looked at
    bool open = true;          // there may be more to take
    std::vector<Row> rows{};
  };
  struct Place {
    int level;
    std::int64_t available_at;
    std::int64_t id;
  };
  enum class Fate : std::uint8_t { taken, set_aside, left };

  // queue_claim.cpp
  void take_due();
  void scan(const ClaimCursor::Scan& scan);
  [[nodiscard]] std::vector<Place> first_due(const ClaimCursor::Scan& scan);
  void scan_level(Place from);
  /// Which abandoned rows may be had.
  [[nodiscard]] std::int64_t crashes_below() const;
  [[nodiscard]] Row read_row(const RowView& row) const;
  /// What becomes of a locked row; the caller keeps it when it is taken.
  Fate consider(const Row& row);
  void write();
  [[nodiscard]] std::size_t room() const noexcept { return request_.limit - taken_; }

  // queue_ordered_claim.cpp
  /// Takes up to `most` rows with keys.
  void take_ordered(std::size_t most);
  void extend_open(std::size_t end);
  [[nodiscard]] bool fetch_heads();
  void take_heads(std::size_t most);
  void extend(std::span<KeyRun* const> runs, std::size_t most);
  [[nodiscard]] Rows lock(const std::vector<std::int64_t>& ids);

  Link& link_;
  const QueueSql& sql_;
  const QueueClaimRequest& request_;
  const std::int64_t now_;
  ClaimMemory& memory_;
  const ClaimMemory::Plan plan_;

  std::size_t taken_ = 0;
  std::size_t suspects_left_;
  const std::string types_;  // that are not wanted
  std::vector<Row> due_;     // without key
  std::deque<KeyRun> runs_;  // pointers to them stay
  std::vector<std::int64_t> unwritten_;
  std::vector<Value> set_aside_;     // parameters of the statement
  AttemptLines crashes_;             // of those that were abandoned
  std::deque<std::string> reasons_;  // borrowed by them
  std::vector<QueueId> quarantined_;
  ClaimCursor::Positions last_claimed_{};

  // The walk over the keys: behind the last claim's last key to the end, then from the beginning to that key.
  std::deque<Head> heads_;  // found, not yet looked at
  std::optional<std::string> walked_to_;
  bool from_beginning_;
  bool round_ = false;  // the walk is over
  bool reached_end_ = false;
  bool long_keys_ = false;  // many rows each: skip from head to head
  std::size_t keys_seen_ = 0;
  std::optional<std::string> last_key_;
};

}  // namespace postrider::mariadb
