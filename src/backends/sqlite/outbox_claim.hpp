// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/sqlite/connection.hpp"
#include "backends/sqlite/outbox_sql.hpp"
#include "storage/outbox_store.hpp"

namespace postrider::sqlite {

/// One claim, inside a transaction that holds the write lock: what it reads stays true until the commit.
///
/// Rows are found first and written afterwards, page by page: writing moves them within the very index that
/// is read.
class OutboxClaim {
 public:
  OutboxClaim(Connection& connection, const OutboxSql& sql, const ClaimRequest& request, std::int64_t now);

  [[nodiscard]] std::vector<ClaimedEvent> run();

 private:
  struct Due {
    std::int64_t seq;
    std::int64_t due_at;
    std::string key;
  };
  [[nodiscard]] std::vector<Due> find_due(const std::string& sql, bool ordered, std::size_t limit);
  [[nodiscard]] bool full() const noexcept { return claimed_.size() >= request_.limit; }
  /// Takes the page's rows and the free ones before them, those due for longest first.
  void merge(const std::vector<Due>& page);
  void take_free_until(std::int64_t due_at);
  /// Takes the head of the key, if it can be had, and what follows it. Once per key and claim.
  void take_run(const std::string& key);
  void take(std::int64_t seq);
  /// Puts off those of the page that are still due: their head is in the way.
  void defer_blocked(const std::vector<Due>& page, std::size_t looked_at);

  Connection& connection_;
  const OutboxSql& sql_;
  const ClaimRequest& request_;
  const std::int64_t now_;
  Statement take_;
  std::vector<Due> free_;
  std::size_t next_free_ = 0;
  std::unordered_map<std::string, std::int64_t> blocked_until_;  // by key: when its head falls due
  bool cut_short_ = false;                                       // some run was longer than allowed
  std::unordered_set<std::int64_t> taken_;                       // ordered rows
  std::vector<ClaimedEvent> claimed_;
};

}  // namespace postrider::sqlite
