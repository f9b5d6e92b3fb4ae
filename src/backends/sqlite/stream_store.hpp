// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "backends/sqlite/writer.hpp"
#include "postrider/clock.hpp"
#include "postrider/identifier.hpp"
#include "storage/stream_flush.hpp"
#include "storage/stream_search.hpp"
#include "storage/stream_store.hpp"

namespace postrider::sqlite {

/// The event store on SQLite. Thread-safe. The file's one write lock is the store's lock.
class SqliteStreamStore final : public StreamStore {
 public:
  SqliteStreamStore(const Identifier& schema, std::string storage_name, Clock& clock, StreamKeys keys,
                    Writer& writer, ConnectionPool& readers);

  std::vector<AppendVerdict> append(std::span<const AppendRequest> requests) override;
  AppendVerdict append(Tx& tx, const AppendRequest& request) override;
  [[nodiscard]] ReadPage read(const ReadRequest& request) override;
  [[nodiscard]] ReadPage read_at(std::span<const Position> positions, std::size_t max_bytes) override;
  [[nodiscard]] Position head() override;
  void check_schema() override;

 private:
  /// Within a transaction that has the write lock.
  [[nodiscard]] std::vector<AppendVerdict> append_in(Connection& connection,
                                                     std::span<const AppendRequest> requests);
  void insert(Connection& connection, std::span<const NewStreamRow> rows);
  [[nodiscard]] std::vector<std::int64_t> find(Connection& connection, const KeyGroup& group,
                                               const StreamRange& range);
  [[nodiscard]] StreamSample sample(Connection& connection, std::int64_t hash, const StreamRange& range);
  [[nodiscard]] StreamHead head_of(Connection& connection);

  const Identifier schema_;
  const std::string storage_name_;
  const std::string events_;
  const std::string tags_;
  const std::string lock_;
  const std::string head_;
  const std::string type_and_tags_;
  const std::string insert_event_;
  const std::string insert_tag_;
  Clock& clock_;
  const StreamKeys keys_;
  Writer& writer_;
  ConnectionPool& readers_;
  const std::string file_;  // absolute, to recognise a transaction on another file
};

}  // namespace postrider::sqlite
