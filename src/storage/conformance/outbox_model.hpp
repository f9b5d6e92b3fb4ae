// SPDX-License-Identifier: Apache-2.0
// The outbox table as a plain list: what random histories are compared with.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "postrider/clock.hpp"
#include "storage/outbox_store.hpp"

namespace postrider::conformance {

struct ModelRow {
  std::string id{};
  std::string key{};
  EventStatus status = EventStatus::fresh;
  std::int64_t attempts = 0;
  TimePoint available{};
  std::optional<TimePoint> done{};
  std::string error{};
  std::string owner{};
  std::optional<TimePoint> lease_until{};
  std::int64_t token = 1;

  [[nodiscard]] bool pending() const { return status == EventStatus::fresh || status == EventStatus::retry; }
  [[nodiscard]] TimePoint due() const { return lease_until ? std::max(available, *lease_until) : available; }
  [[nodiscard]] bool leased(TimePoint now) const {
    return !owner.empty() && lease_until.has_value() && *lease_until > now;
  }
  friend bool operator==(const ModelRow&, const ModelRow&) = default;
};

std::ostream& operator<<(std::ostream& out, const ModelRow& row);

/// Rows in order of seq. The verbs say what must happen; where the port leaves a choice (ties, deferrals) the model looks
/// at what was done and says whether it was allowed.
class OutboxModel {
 public:
  std::vector<ModelRow> rows;

  [[nodiscard]] ModelRow* find(std::string_view id);
  /// Null when the holder is stale.
  [[nodiscard]] ModelRow* held(const LeaseRef& lease);

  /// Checks what a claim returned and marks it as taken. Returns a complaint, or nothing.
  [[nodiscard]] std::string check_claim(const ClaimRequest& request, TimePoint now,
                                        std::span<const ClaimedEvent> claimed);
  /// After a claim: takes over the deferrals that the store made. Returns a complaint, or nothing.
  [[nodiscard]] std::string adopt_deferrals(const std::vector<ModelRow>& actual, TimePoint now);

  bool complete(const Completion& completion, TimePoint now);
  bool renew(const LeaseRef& lease, TimePoint until);
  std::int64_t revive(std::size_t limit, TimePoint now);
  std::int64_t purge(EventStatus status, Duration age, std::size_t limit, TimePoint now);

 private:
  [[nodiscard]] std::vector<ModelRow*> pending_of(std::string_view key);
  /// Finished rows of a status, oldest end first.
  [[nodiscard]] std::vector<ModelRow*> finished(EventStatus status);
  [[nodiscard]] std::string check_key(const std::string& key, const ClaimRequest& request, TimePoint now,
                                      std::span<const std::string> got, bool exhausted);
};

}  // namespace postrider::conformance
