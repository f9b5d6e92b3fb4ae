// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/sqlite/writer.hpp"
#include "postrider/identifier.hpp"
#include "storage/entry_store.hpp"
#include "storage/sql_entry_purge.hpp"
#include "storage/sql_entry_reader.hpp"

namespace postrider::sqlite {

/// Entries of the Event Log API on SQLite. Thread-safe.
class SqliteEntryStore final : public EntryStore {
 public:
  SqliteEntryStore(const Identifier& schema, Clock& clock, Writer& writer, SqlDialect dialect);

  std::vector<InsertedEntry> insert(std::span<const Entry> entries) override;
  EntryPage find(const EntryQuery& query) override { return reader_.find(query); }
  std::optional<StoredEntry> get(EntryId id) override { return reader_.get(id); }
  std::int64_t count_before(TimePoint time) override { return purge_.count_before(time); }
  std::int64_t purge_before(TimePoint time, std::size_t limit) override {
    return purge_.purge_before(time, limit);
  }

 private:
  [[nodiscard]] InsertedEntry insert_one(Connection& connection, Statement& statement, const Entry& entry,
                                         std::int64_t now) const;

  const std::string insert_;
  const std::string first_with_key_;
  const std::string add_words_;
  Clock& clock_;
  Writer& writer_;
  const SqlEntryPurge purge_;
  const SqlEntryReader reader_;
};

}  // namespace postrider::sqlite
