// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "backends/mariadb/sql_text.hpp"
#include "backends/mariadb/work.hpp"
#include "postrider/clock.hpp"
#include "postrider/identifier.hpp"
#include "storage/stream_flush.hpp"
#include "storage/stream_page.hpp"
#include "storage/stream_search.hpp"
#include "storage/stream_store.hpp"

namespace postrider::mariadb {

/// The event store on MariaDB. Thread-safe.
///
/// The store's lock is a row, locked until the commit. Our own appends wait for it as long as the pool waits
/// for a connection; a user's transaction waits as the user has told its session. Behind it, everything that
/// an append looks at is read with locks, which sees what is committed now, whatever the isolation level of a
/// user's transaction is.
class MariadbStreamStore final : public StreamStore {
 public:
  /// `clock` may be null: then the database's counts. `lock_wait` counts in whole seconds.
  MariadbStreamStore(const Work& work, const Identifier& schema, Clock* clock, StreamKeys keys,
                     Duration lock_wait, std::string name);

  std::vector<AppendVerdict> append(std::span<const AppendRequest> requests) override;
  AppendVerdict append(Tx& tx, const AppendRequest& request) override;
  [[nodiscard]] ReadPage read(const ReadRequest& request) override;
  [[nodiscard]] ReadPage read_at(std::span<const Position> positions, std::size_t max_bytes) override;
  [[nodiscard]] Position head() override;
  void check_schema() override;

 private:
  [[nodiscard]] std::vector<AppendVerdict> append_in(Link& link,
                                                     std::span<const AppendRequest> requests) const;
  void take_lock(Link& link) const;
  void ask(Link& link, StreamFlush& flush) const;
  void insert(Link& link, std::span<const NewStreamRow> rows) const;
  [[nodiscard]] std::vector<std::int64_t> find(Link& link, const KeyGroup& group, const StreamRange& range,
                                               std::string_view locking) const;
  [[nodiscard]] std::vector<StreamSample> samples(Link& link, const KeyGroup& group, const StreamRange& range,
                                                  std::string_view locking) const;
  [[nodiscard]] StreamHead head_of(Link& link, std::string_view locking) const;
  void read_all(Link& link, StreamRange range, StreamPage& page) const;
  void read_found(Link& link, std::span<const std::int64_t> positions, bool backwards,
                  StreamPage& page) const;

  const Work& work_;
  const Identifier schema_;
  Clock* clock_;
  const StreamKeys keys_;
  const std::string name_;
  const std::string events_;
  const std::string tags_;
  const std::string lock_;
  const Duration lock_wait_;
  const std::string bounded_lock_;
  const std::string head_;
  const std::string type_and_tags_;
  const ListSql probe_one_;
  const ListSql insert_events_;
  const ListSql insert_tags_;
  const ListSql by_position_;
  const ListSql by_position_backwards_;
};

}  // namespace postrider::mariadb
