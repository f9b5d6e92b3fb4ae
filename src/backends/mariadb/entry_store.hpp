// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>

#include "backends/mariadb/sql_text.hpp"
#include "backends/mariadb/work.hpp"
#include "postrider/identifier.hpp"
#include "storage/entry_store.hpp"
#include "storage/sql_entry_purge.hpp"
#include "storage/sql_entry_reader.hpp"

namespace postrider::mariadb {

/// Entries of the Event Log API on MariaDB. Thread-safe.
class MariadbEntryStore final : public EntryStore {
 public:
  /// `clock` may be null: then the database's counts.
  MariadbEntryStore(const Work& work, const Identifier& schema, Clock* clock, SqlDialect dialect);

  std::vector<InsertedEntry> insert(std::span<const Entry> entries) override;
  EntryPage find(const EntryQuery& query) override { return reader_.find(query); }
  std::optional<StoredEntry> get(EntryId id) override { return reader_.get(id); }
  std::int64_t count_before(TimePoint time) override { return purge_.count_before(time); }
  std::int64_t purge_before(TimePoint time, std::size_t limit) override {
    return purge_.purge_before(time, limit);
  }

 private:
  /// Application and idempotency key → the place of the first entry in the call that has them.
  using Keys = std::map<std::pair<std::string_view, std::string_view>, std::size_t>;
  /// Fills in the answers for keys that are there already.
  void find_first(Link& link, const Keys& keys, std::vector<InsertedEntry>& answers) const;
  /// Inserts these, in statements of bounded size, and fills in their ids.
  void insert_new(Link& link, std::span<const Entry> entries, std::span<const std::size_t> places,
                  std::vector<InsertedEntry>& answers) const;

  const Work& work_;
  Clock* clock_;
  const std::string step_;
  const ListSql insert_;
  const ListSql first_with_key_;
  const SqlEntryPurge purge_;
  const SqlEntryReader reader_;
};

}  // namespace postrider::mariadb
