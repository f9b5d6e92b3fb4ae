// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/postgres/queue_store.hpp"

namespace postrider::postgres {

inline constexpr std::string_view cannot_claim_queued = "cannot claim queued events";

/// One claim. Used once. If an exception leaves `run`, a transaction may still be open.
///
/// While no row has an ordering key this is one round trip: the scan of the due rows, which does nothing when
/// there are ordered rows after all. With ordered rows it is one transaction: a walk over their keys, locks
/// on the heads and on what follows them, the due rows without a key, the update of the ordered ones. A key
/// belongs to whoever holds the row lock of its head; nobody waits for a lock here.
class QueueClaimer {
 public:
  QueueClaimer(Connection& connection, const QueueSql& sql, const QueueClaimRequest& request,
               std::optional<TimePoint> now, ClaimMemory& memory);

  [[nodiscard]] QueueClaimResult run();

 private:
  /// A row that a run may take, in the order of its key.
  struct Candidate {
    std::int64_t id;
    bool abandoned;
    bool suspect;
    bool quarantine;
  };
  /// A key whose head we hold locked.
  struct KeyRun {
    std::string key;
    std::int64_t head = 0;
    std::vector<Candidate> rows{};
    std::size_t taken = 0;  // how many of the rows, from the head on
  };
  /// What one scan of the due rows brought.
  struct Scanned {
    std::size_t claimed = 0;
    std::size_t quarantined = 0;
    std::size_t suspects = 0;
  };

  // queue_claim.cpp
  /// False when there are ordered rows, and nothing was claimed for that reason.
  [[nodiscard]] bool claim_without_order();
  /// Further scans, while rows that were passed over or went to quarantine may have hidden others.
  using ScanOnce = std::function<Scanned(const ClaimCursor::Scan& scan, std::size_t limit)>;
  void scan_until_full(std::size_t most, const ScanOnce& scan_once);
  void bind_scan(const ClaimCursor::Scan& scan, std::size_t limit, bool unless_ordered);
  void bind_types();
  Scanned read_scan(const ClaimCursor::Scan& scan, const Result& rows, std::size_t limit,
                    std::optional<TimePoint> began, TimePoint ended);
  [[nodiscard]] QueuedEvent read_row(const Result& rows, int row) const;
  [[nodiscard]] QueueClaimResult sorted_result();
  [[nodiscard]] std::size_t room() const noexcept {
    return request_.limit - std::min(request_.limit, ordered_.size() + unordered_.size());
  }

  // queue_ordered_claim.cpp
  void claim_with_order();
  /// Fills `runs_`: locks the heads of keys behind the last one looked at, and what follows them, until
  /// enough rows were found or all keys were seen.
  void collect_runs();
  /// One page of keys, in order. Begins the transaction with the first.
  [[nodiscard]] Result walk(const std::optional<std::string>& after, const std::string& up_to,
                            std::size_t keys);
  void lock_runs(std::vector<KeyRun> found);
  /// Decides how much of the runs is taken: `most` events at most, and of the suspects not more than
  /// `suspects`. Returns how many of each there are.
  struct Selected {
    std::size_t events = 0;
    std::size_t suspects = 0;
  };
  Selected select(std::size_t most, std::size_t suspects);
  void take();
  void remember_key();
  Scanned scan_in_transaction(const ClaimCursor::Scan& scan, std::size_t limit);

  Connection& connection_;
  const QueueSql& sql_;
  const QueueClaimRequest& request_;
  const std::optional<TimePoint> now_;
  ClaimMemory& memory_;
  ClaimMemory::Plan plan_;
  Params params_;

  std::size_t suspects_left_;
  struct Claimed {
    ClaimCursor::Position position;
    QueuedEvent event;
  };
  std::vector<Claimed> unordered_;
  std::vector<QueuedEvent> ordered_;
  std::vector<QueueId> quarantined_;

  bool begun_ = false;
  std::vector<KeyRun> runs_;
  bool reached_end_ = false;                   // of the keys
  bool more_keys_ = false;                     // and there are more to look at
  std::optional<std::string> last_looked_at_;  // every key up to here is in runs_, or cannot be had
};

}  // namespace postrider::postgres
