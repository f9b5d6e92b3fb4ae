// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "storage/outbox_search_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// OutboxSearchStore for all three databases.
class SqlOutboxSearchStore final : public OutboxSearchStore {
 public:
  explicit SqlOutboxSearchStore(SqlDialect dialect) : dialect_(std::move(dialect)) {}

  OutboxPage search(const OutboxSearch& search) override;
  std::vector<EventId> known(std::span<const EventId> ids) override;
  std::vector<DeadError> dead_errors(std::size_t limit, std::size_t chars) override;

 private:
  SqlDialect dialect_;
};

}  // namespace postrider
