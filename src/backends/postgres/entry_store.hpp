// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "backends/postgres/connection.hpp"
#include "postrider/identifier.hpp"
#include "storage/entry_store.hpp"
#include "storage/sql_entry_purge.hpp"
#include "storage/sql_entry_reader.hpp"

namespace postrider::postgres {

/// Entries of the Event Log API on PostgreSQL. Thread-safe.
class PostgresEntryStore final : public EntryStore {
 public:
  /// Lends a connection of the pool to `work`.
  using WithConnection = std::function<void(const std::function<void(Connection&)>& work)>;

  PostgresEntryStore(const Identifier& schema, Clock* clock, WithConnection with_connection,
                     SqlDialect dialect);

  std::vector<InsertedEntry> insert(std::span<const Entry> entries) override;
  EntryPage find(const EntryQuery& query) override { return reader_.find(query); }
  std::optional<StoredEntry> get(EntryId id) override { return reader_.get(id); }
  std::int64_t count_before(TimePoint time) override { return purge_.count_before(time); }
  std::int64_t purge_before(TimePoint time, std::size_t limit) override {
    return purge_.purge_before(time, limit);
  }

 private:
  /// Answers `inserted` for what was new; the others are left with `duplicate` and without an id.
  void insert_new(Connection& connection, std::span<const Entry> entries,
                  std::vector<InsertedEntry>& answers) const;
  /// False when one of the first ones has been removed meanwhile.
  [[nodiscard]] bool find_first(Connection& connection, std::span<const Entry> entries,
                                std::vector<InsertedEntry>& answers) const;

  const Statement insert_;
  const Statement first_with_key_;
  Clock* clock_;
  const WithConnection with_connection_;
  const SqlEntryPurge purge_;
  const SqlEntryReader reader_;
};

}  // namespace postrider::postgres
