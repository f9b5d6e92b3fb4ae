// SPDX-License-Identifier: Apache-2.0
// The queue's tables as plain lists: what random histories are compared with.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "storage/conformance/queue_rows.hpp"
#include "storage/queue_store.hpp"

namespace postrider::conformance {

/// The verbs say what must happen. Where the port leaves a choice (which keys have their turn, the numbers
/// within a batch, which suspects are quarantined when there are too many) the model looks at what was
/// done and says whether it was allowed. Complaints are texts; an empty one is none.
class QueueModel {
 public:
  std::vector<QueueRow> rows;  ///< in order of id
  std::vector<LogRow> log;     ///< in order of seq
  std::map<std::pair<std::int64_t, std::string>, HandlerResult> states;

  /// Takes the row's id from what was answered.
  [[nodiscard]] std::string insert(QueueRow row, const InsertedRow& answer);
  /// Checks what a claim returned and marks it as taken.
  [[nodiscard]] std::string check_claim(const QueueClaimRequest& request, TimePoint now,
                                        const QueueClaimResult& result);
  [[nodiscard]] bool renew(const Claim& claim, TimePoint until);
  [[nodiscard]] Settled settle(const Settlement& settlement, TimePoint now);
  /// After settlements: takes over the numbers that the log has given to new entries.
  [[nodiscard]] std::string adopt_numbers(const std::vector<LogRow>& actual);
  [[nodiscard]] bool save_states(const Claim& claim, std::span<const HandlerResult> results);
  /// Drops the states of events that are not in the queue. Returns how many.
  [[nodiscard]] std::size_t clean_states();

 private:
  /// One claim while it is looked at.
  struct Look {
    const QueueClaimRequest& request;
    TimePoint now;
    std::set<std::int64_t> taken;
    std::set<std::int64_t> quarantined;
    std::size_t free = 0;
    std::size_t ordered = 0;
    std::size_t suspects = 0;
    const QueueRow* last_free = nullptr;
  };
  [[nodiscard]] QueueRow* find(QueueId id);
  [[nodiscard]] QueueRow* held(const Claim& claim);
  void keep_states(std::int64_t id, std::span<const HandlerResult> results);
  [[nodiscard]] std::string check_event(Look& look, const QueuedEvent& event);
  [[nodiscard]] std::string check_free(const Look& look) const;
  [[nodiscard]] std::string check_key(const Look& look, const std::string& key) const;
  /// Whether the claim could have had this row, which it left.
  [[nodiscard]] static bool could_be_had(const Look& look, const QueueRow& row);
};

}  // namespace postrider::conformance
