// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "storage/outbox_pending_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// OutboxPendingStore for all three databases: rare verbs, plain SQL, so once is enough.
class SqlOutboxPendingStore final : public OutboxPendingStore {
 public:
  explicit SqlOutboxPendingStore(SqlDialect dialect) : dialect_(std::move(dialect)) {}

  TimePoint now() override;
  std::int64_t count(const PendingRows& rows) override;
  std::int64_t apply(const PendingRows& rows, std::span<const EventId> ids, std::string_view reason) override;

 private:
  SqlDialect dialect_;
};

}  // namespace postrider
