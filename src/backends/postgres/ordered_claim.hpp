// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/postgres/claimed_rows.hpp"
#include "backends/postgres/connection.hpp"
#include "backends/postgres/outbox_store.hpp"

namespace postrider::postgres {

/// One claim that looks at ordered rows as well, in one transaction: three round trips, and three more for
/// each further page when the first was full of rows that cannot be had. Used once. If an exception leaves
/// `run`, the transaction is still open.
///
/// A key belongs to whoever holds the row lock of its head; nobody waits for a lock here.
class OrderedClaim {
 public:
  OrderedClaim(Connection& connection, const OutboxSql& sql, const ClaimRequest& request,
               std::optional<TimePoint> now);

  [[nodiscard]] std::vector<ClaimedEvent> run();
  /// Whether there were any ordered rows to look at.
  [[nodiscard]] bool saw_ordered() const noexcept { return saw_ordered_; }

 private:
  /// A key whose head we hold locked.
  struct Run {
    std::string key;
    std::size_t continued = npos;          // its place in continue_keys
    std::optional<TimePoint> first_due{};  // of its rows on the page
    std::int64_t head_seq = 0;
    TimePoint blocked_until{};  // when it is worth looking at again, if the head cannot be taken
    bool take = false;
    std::vector<std::string> ids{};  // the head, then the rows behind it without a gap
    std::vector<std::int64_t> seqs{};
    std::size_t taken = 0;  // how many of these fit into the limit

    static constexpr std::size_t npos = static_cast<std::size_t>(-1);
  };
  struct Taken {
    bool continued;
    std::optional<TimePoint> first_due;
    std::int64_t number;
  };

  /// One page of due rows. True when it ended with COMMIT.
  [[nodiscard]] bool run_page(int number);
  [[nodiscard]] std::vector<Run> lock_heads(int page);
  void lock_followers(const std::vector<Run*>& takers);
  void send_take(Pipeline& pipeline, const std::vector<Run*>& takers);
  void send_defer(Pipeline& pipeline, const std::vector<Run>& runs, bool also_behind_taken);
  [[nodiscard]] std::size_t room() const noexcept { return request_.limit - claimed_; }

  Connection& connection_;
  const OutboxSql& sql_;
  const ClaimRequest& request_;
  const std::optional<TimePoint> now_;
  Params params_;
  std::unordered_map<std::string_view, std::size_t> continued_;  // key → place
  bool begun_ = false;
  bool saw_ordered_ = false;
  bool page_full_ = false;
  std::size_t unordered_share_ = 0;
  std::size_t claimed_ = 0;
  std::int64_t next_number_ = 0;
  std::list<std::vector<Result>> answers_;  // what places_ points into
  std::vector<Place> places_;
};

}  // namespace postrider::postgres
