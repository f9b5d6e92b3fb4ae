// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/sqlite/outbox_sql.hpp"
#include "backends/sqlite/writer.hpp"
#include "postrider/clock.hpp"
#include "storage/outbox_store.hpp"
#include "storage/pool.hpp"

namespace postrider::sqlite {

/// The outbox on SQLite. The database's clock is this process's: there is no server to ask.
///
/// Statements are stepped row by row inside one transaction: without a network between, that is the fast
/// shape.
class SqliteOutboxStore final : public OutboxStore {
 public:
  SqliteOutboxStore(const Identifier& schema, std::string storage_name, Clock& clock, Writer& writer,
                    ConnectionPool& readers);

  void insert(Tx& tx, std::string_view owner, std::span<const NewOutboxRow> rows) override;
  std::vector<ClaimedEvent> claim(const ClaimRequest& request) override;
  std::vector<EventId> renew(std::span<const LeaseRef> held, Duration lease) override;
  std::size_t complete(std::span<const Completion> results) override;
  std::vector<EventId> predecessors(std::string_view key, const EventId& id, std::size_t limit) override;
  void check_schema() override;

 private:
  [[nodiscard]] bool anything_due();
  [[nodiscard]] std::int64_t now() const;

  const Identifier schema_;
  const std::string storage_name_;
  const OutboxSql sql_;
  Clock& clock_;
  Writer& writer_;
  ConnectionPool& readers_;
  const std::string file_;  // absolute, to recognise a transaction on another file
};

}  // namespace postrider::sqlite
