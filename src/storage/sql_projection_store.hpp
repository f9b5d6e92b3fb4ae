// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "storage/projection_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// ProjectionStore for all three databases.
class SqlProjectionStore final : public ProjectionStore {
 public:
  explicit SqlProjectionStore(SqlDialect dialect);

  std::optional<ProjectionLease> acquire(std::string_view name, int version, std::string_view owner,
                                         Duration lease, ProjectionTake take) override;
  bool renew(const ProjectionFence& fence, Duration lease) override;
  bool advance(Tx& tx, const ProjectionFence& fence, const ProjectionAdvance& step) override;
  bool fail(const ProjectionFence& fence, const ProjectionFailure& failure) override;
  std::vector<ProjectionStatus> list(std::string_view name) override;
  ProjectionChanged change(std::string_view name, int version, ProjectionChange what) override;
  ProjectionChanged restart(Tx& tx, const ProjectionFence& fence) override;
  std::vector<SkippedEntry> skipped(std::string_view name, int version, LogSeq after,
                                    std::size_t limit) override;

 private:
  ProjectionChanged enroll(std::string_view name, int version);
  ProjectionChanged switch_to(std::string_view name, int version);
  ProjectionChanged forget(std::string_view name, int version);

  SqlDialect dialect_;
};

}  // namespace postrider
