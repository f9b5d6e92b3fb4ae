// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/stream_sql.hpp"
#include "postrider/clock.hpp"
#include "storage/stream_flush.hpp"
#include "storage/stream_keys.hpp"
#include "storage/stream_page.hpp"
#include "storage/stream_store.hpp"

namespace postrider::postgres {

/// The event store on PostgreSQL. Thread-safe. An append of our own is two round trips: lock, conditions and
/// head; then rows and COMMIT.
class PostgresStreamStore final : public StreamStore {
 public:
  /// Lends a connection of the pool to `work`.
  using WithConnection = std::function<void(const std::function<void(Connection&)>& work)>;

  PostgresStreamStore(const Identifier& schema, Clock* clock, Duration lock_timeout, StreamKeys keys,
                      WithConnection with_connection, std::function<void()> check_schema);

  std::vector<AppendVerdict> append(std::span<const AppendRequest> requests) override;
  AppendVerdict append(Tx& tx, const AppendRequest& request) override;
  [[nodiscard]] ReadPage read(const ReadRequest& request) override;
  [[nodiscard]] ReadPage read_at(std::span<const Position> positions, std::size_t max_bytes) override;
  [[nodiscard]] Position head() override;
  void check_schema() override { check_schema_(); }

 private:
  [[nodiscard]] std::vector<AppendVerdict> flush(std::span<const AppendRequest> requests);
  void write(Connection& connection, std::span<const NewStreamRow> rows) const;
  /// With the rows of a statement that reads.
  void fill(StreamPage& page, const ReadRequest& request, const Statement& statement,
            const Params& params) const;
  [[nodiscard]] std::optional<TimePoint> now() const;

  const StreamSql sql_;
  Clock* clock_;
  const StreamKeys keys_;
  const WithConnection with_connection_;
  const std::function<void()> check_schema_;
};

}  // namespace postrider::postgres
