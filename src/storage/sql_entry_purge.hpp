// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "postrider/clock.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// The removing verbs of EntryStore, for all three databases. Thread-safe.
class SqlEntryPurge {
 public:
  explicit SqlEntryPurge(SqlDialect dialect);

  [[nodiscard]] std::int64_t count_before(TimePoint time) const;
  [[nodiscard]] std::int64_t purge_before(TimePoint time, std::size_t limit) const;

 private:
  SqlDialect dialect_;
};

}  // namespace postrider
