// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "storage/progress_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// RelayAdminStore for all three databases.
class SqlRelayAdminStore final : public RelayAdminStore {
 public:
  explicit SqlRelayAdminStore(SqlDialect dialect);

  std::vector<PairStatus> list(const PairSelector& which) override;
  std::size_t change(const PairSelector& which, PairChange what) override;
  std::size_t move_to(const PairSelector& which, Position position) override;
  bool forget(const PairName& pair, std::string_view leader) override;
  std::vector<DeadLetter> dead_letters(const PairSelector& which, std::size_t limit, Position after) override;
  std::size_t count_dead(const PairSelector& which, std::optional<Position> until) override;
  std::size_t discard(const PairSelector& which, std::optional<Position> until) override;

 private:
  SqlDialect dialect_;
};

}  // namespace postrider
