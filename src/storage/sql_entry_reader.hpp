// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "storage/entry_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// The reading verbs of EntryStore, for all three databases. Thread-safe.
class SqlEntryReader {
 public:
  explicit SqlEntryReader(SqlDialect dialect);

  [[nodiscard]] EntryPage find(const EntryQuery& query) const;
  [[nodiscard]] std::optional<StoredEntry> get(EntryId id) const;

 private:
  [[nodiscard]] Rows read(const EntryQuery& query, const std::optional<EntryPosition>& after,
                          std::size_t limit) const;
  void add_words(SqlQuery& sql, const std::vector<std::string>& words, std::vector<std::string>& texts) const;
  void add_filters(SqlQuery& sql, const EntryQuery& query, const std::optional<EntryPosition>& after) const;

  SqlDialect dialect_;
};

}  // namespace postrider
