// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "postrider/outbox_admin.hpp"
#include "storage/outbox_pending_store.hpp"

namespace postrider {

/// Which rows are walked through, and in which order: what there is an index for.
enum class OutboxList : std::uint8_t {
  all,      ///< by id, highest first: of ULIDs the newest
  pending,  ///< NEW and RETRY, by the time at which somebody may take them, earliest first
  done,     ///< by the time of their end, latest first
  dead,     ///< by the time of their death, latest first
};

/// Where a page ended.
struct OutboxMark {
  TimePoint at{};        ///< the list's time; not used for `all`
  std::int64_t seq = 0;  ///< for `pending`
  EventId id{};          ///< for the others
};

/// What is looked for; what is not set matches all.
struct OutboxSearch {
  OutboxList list = OutboxList::all;
  std::optional<EventStatus> status{};  ///< within the list
  std::optional<std::string> type{};
  std::optional<std::string> aggregate_type{};
  std::optional<std::string> aggregate_id{};
  std::optional<std::string> tenant_id{};
  std::optional<std::string> error_contains{};  ///< upper and lower case differ
  /// Of `pending` only: what operators ask of such rows, besides; its `ids` are not looked at.
  std::optional<PendingRows> rows{};
  /// Of the list's time; for `all` of created_at.
  std::optional<TimePoint> from{};   ///< inclusive
  std::optional<TimePoint> until{};  ///< exclusive
  std::optional<OutboxMark> after{};
  std::size_t limit = 100;
  /// At most so many rows are looked at, however few of them match: no search takes long.
  std::size_t look_at = 10'000;
};

struct OutboxPage {
  /// Without payloads and headers, which may be large; see OutboxAdmin::find.
  std::vector<OutboxRecord> records{};
  /// Not set when the list was walked to its end.
  std::optional<OutboxMark> next{};
};

/// What a dead letter died of.
struct DeadError {
  EventId id{};
  std::string type{};
  TimePoint died_at{};
  std::string error{};  ///< its beginning
};

/// Looks through the outbox without holding it up. Thread-safe. Rows that change meanwhile may be missed, or
/// seen twice.
class OutboxSearchStore {
 public:
  virtual ~OutboxSearchStore() = default;

  virtual OutboxPage search(const OutboxSearch& search) = 0;
  /// Of these ids those that there are rows of, at most 10,000.
  virtual std::vector<EventId> known(std::span<const EventId> ids) = 0;
  /// Of the dead letters that died last: at most `limit`, of each error at most `chars` characters.
  virtual std::vector<DeadError> dead_errors(std::size_t limit, std::size_t chars) = 0;
};

}  // namespace postrider
