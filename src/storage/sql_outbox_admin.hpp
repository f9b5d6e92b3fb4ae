// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "postrider/value.hpp"
#include "storage/outbox_store.hpp"

namespace postrider {

/// The few words in which the databases differ for the admin verbs. Times travel as microseconds since 1970.
struct SqlDialect {
  BackendKind kind;
  std::string outbox_table;  ///< qualified and safe to paste
  /// Runs one statement (with `?` placeholders) in a transaction of its own. Those that only read begin with
  /// "select".
  std::function<Rows(std::string_view sql, std::span<const Value> params)> run;
  /// Microseconds → the column's type, around a placeholder or expression: e.g. "(timestamptz 'epoch' + {} *
  /// interval '1 microsecond')".
  std::string from_micros;
  /// The column → microseconds: e.g. "(extract(epoch from {}) * 1000000)::bigint".
  std::string to_micros;
  /// The database's now as the column's type; a placeholder is bound instead when the storage has a clock of
  /// its own.
  std::string now;
  Clock* clock = nullptr;
  /// Reads a binary column as lower-case hex text: e.g. "encode({}, 'hex')", "lower(hex({}))".
  std::string hex;
};

/// OutboxAdminStore for all three databases: rare verbs, plain SQL, so once is enough.
class SqlOutboxAdminStore final : public OutboxAdminStore {
 public:
  explicit SqlOutboxAdminStore(SqlDialect dialect);

  OutboxCounts counts() override;
  std::optional<OutboxRecord> find(const EventId& id) override;
  std::vector<OutboxRecord> list_dead(const DeadLetterFilter& filter, std::size_t limit,
                                      const OutboxRecord* after) override;
  std::int64_t count_dead(const DeadLetterFilter& filter) override;
  std::int64_t revive_dead(const DeadLetterFilter& filter, std::size_t limit) override;
  bool edit_dead(const EventId& id, PayloadKind kind, std::string_view payload,
                 std::optional<std::string_view> headers_json) override;
  std::int64_t purge_batch(EventStatus status, Duration age, std::size_t limit) override;
  std::int64_t count_purgeable(EventStatus status, Duration age) override;

 private:
  SqlDialect dialect_;
};

}  // namespace postrider
