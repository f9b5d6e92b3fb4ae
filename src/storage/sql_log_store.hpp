// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "storage/log_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// LogStore for all three databases.
class SqlLogStore final : public LogStore {
 public:
  explicit SqlLogStore(SqlDialect dialect);

  LogPage read(LogSeq after, std::size_t limit, const LogFilter& filter) override;
  LogPage read_back(LogSeq before, std::size_t limit, const LogFilter& filter) override;
  LogSeq head() override;
  std::optional<LogEntry> find(QueueId id) override;
  std::vector<FailedAttempt> attempts(QueueId id) override;

 private:
  enum class Way { up, down };

  [[nodiscard]] LogPage walk(LogSeq from, Way way, std::size_t limit, const LogFilter& filter);
  [[nodiscard]] std::optional<LogSeq> window_end(LogSeq from, Way way, std::size_t rows);

  SqlDialect dialect_;
};

}  // namespace postrider
