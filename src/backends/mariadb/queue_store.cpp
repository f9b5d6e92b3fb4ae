// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/queue_store.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <utility>

#include "backends/mariadb/in_list.hpp"
#include "backends/mariadb/lock_wait.hpp"
#include "backends/mariadb/migration_target.hpp"
#include "backends/mariadb/queue_states.hpp"
#include "backends/mariadb/tx_work.hpp"
#include "core/failpoint.hpp"
#include "postrider/error.hpp"
#include "storage/migrator.hpp"

namespace postrider::mariadb {
namespace {

constexpr std::int64_t processing_status = static_cast<std::int64_t>(QueueStatus::processing);
constexpr std::size_t orphans_at_once = 1000;

void append_row(std::vector<Value>& values, const NewQueueRow& row, const Value& now) {
  const Event& event = *row.event;
  const bool json = event.payload_kind() == PayloadKind::json;
  const auto deliver_at = event.deliver_at();
  values.insert(
      values.end(),
      {Value(Blob{event.id().view()}), Value(Blob{event.type()}), bytes_or_null(event.aggregate_type()),
       bytes_or_null(event.aggregate_id()), bytes_or_null(event.tenant_id()), bytes_or_null(row.ordering_key),
       bytes_or_null(row.dedupe_key), json ? Value(Blob{event.payload()}) : Value(nullptr),
       json ? Value(nullptr) : Value(Blob{event.payload()}), bytes_or_null(event.headers_json()),
       Value(row.priority), deliver_at ? Value(deliver_at->time_since_epoch().count()) : Value(nullptr), now,
       now, now, Value(event.occurred_at().time_since_epoch().count())});
}

/// How many rows go into the next statement: one with a dedupe key, or a size of ListSql of others.
std::size_t piece_of(std::span<const NewQueueRow> rows) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  while (count < std::min(rows.size(), ListSql::max_size) && rows[count].dedupe_key.empty()) {
    bytes += bytes_of(*rows[count].event);
    if (count > 0 && bytes > statement_bytes) break;
    ++count;
  }
  const auto above = std::upper_bound(ListSql::sizes.begin(), ListSql::sizes.end(), count);
  return above == ListSql::sizes.begin() ? 1 : *(above - 1);
}

std::vector<std::int64_t> numbers_of(std::span<const QueueId> ids) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(ids.size());
  for (const QueueId id : ids) numbers.push_back(static_cast<std::int64_t>(id));
  return numbers;
}

}  // namespace

MariadbQueueStore::MariadbQueueStore(const Work& work, const Identifier& schema, Clock* clock,
                                     std::string name)
    : work_(work),
      schema_(schema),
      clock_(clock),
      name_(std::move(name)),
      sql_(schema),
      memory_(clock != nullptr) {}

Value MariadbQueueStore::now_or_null() const {
  return clock_ == nullptr ? Value(nullptr) : Value(clock_->now().time_since_epoch().count());
}

std::vector<InsertedRow> MariadbQueueStore::insert(Tx& tx, std::span<const NewQueueRow> rows) {
  Link& link = link_of(tx);
  std::vector<InsertedRow> inserted;
  if (rows.empty()) return inserted;
  inserted.reserve(rows.size());
  const Value now = now_or_null();
  std::int64_t step = 1;
  if (piece_of(rows) > 1) {
    link.run(sql_.step, {}, [&](const RowView& row) { step = row.integer(0); });
  }
  whole_or_not(link, piece_of(rows) < rows.size(), [&] {
    std::vector<Value> values;
    while (!rows.empty()) {
      const std::size_t count = piece_of(rows);
      const bool unique = !rows.front().dedupe_key.empty();
      values.clear();
      values.reserve(count * QueueSql::insert_columns);
      for (const NewQueueRow& row : rows.first(count)) append_row(values, row, now);
      link.run(unique ? sql_.insert_unique : sql_.insert.for_count(count).sql, values, {});
      // All numbers of a statement that says how many rows it has are reserved at once.
      const std::int64_t first = link.insert_id();
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t id = first < 0 ? -first : first + static_cast<std::int64_t>(i) * step;
        inserted.push_back({.id = QueueId{id}, .duplicate = first < 0});
      }
      rows = rows.subspan(count);
    }
  });
  failpoint("queue.insert.after");
  return inserted;
}

std::vector<QueueId> MariadbQueueStore::renew(std::span<const Claim> held, Duration lease) {
  std::vector<QueueId> renewed;
  if (held.empty()) return renewed;
  std::set<std::pair<std::int64_t, std::int64_t>> refs;  // an id may come with several tokens
  std::vector<std::int64_t> ids;
  for (const Claim& claim : held) {
    ids.push_back(static_cast<std::int64_t>(claim.id));
    refs.emplace(ids.back(), static_cast<std::int64_t>(claim.token));
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  work_.transaction(
      [&](Link& link) {
        renewed.clear();
        std::vector<std::int64_t> ours;
        std::vector<std::int64_t> unseen = ids;
        run_list(link, sql_.lock_idle, {}, ids, {}, [&](const RowView& row) {
          const std::int64_t id = row.integer(0);
          unseen.erase(std::lower_bound(unseen.begin(), unseen.end(), id));
          if (refs.contains({id, row.integer(1)}) && row.integer(2) == processing_status) ours.push_back(id);
        });
        const std::array<Value, 3> before{now_or_null(), Value(bounded(lease)), now_or_null()};
        run_list(link, sql_.extend, before, ours, {}, {});
        // A handler that writes about its event in a long transaction has its row locked, and is not to hold
        // up the renewal of the others. Nobody can take a locked row, so that its lease does not matter.
        const Value now = now_or_null();
        run_list(link, sql_.held, {&now, 1}, unseen, {}, [&](const RowView& row) {
          if (refs.contains({row.integer(0), row.integer(1)})) ours.push_back(row.integer(0));
        });
        for (const std::int64_t id : ours) renewed.push_back(QueueId{id});
      },
      {"mariadb.queue.renew.before_commit", "mariadb.queue.renew.after_commit"});
  return renewed;
}

std::vector<QueueStore::EventState> MariadbQueueStore::load_states(std::span<const QueueId> ids) {
  std::vector<EventState> states;
  work_.run([&](Link& link) {
    states.clear();
    run_list(link, sql_.load_states, {}, numbers_of(ids), {}, [&](const RowView& row) {
      states.push_back({.id = QueueId{row.integer(0)},
                        .result = {.handler = std::string(row.text(1)),
                                   .verdict = static_cast<HandlerVerdict>(row.integer(2)),
                                   .failed = Attempt{static_cast<std::int32_t>(row.integer(3))},
                                   .error = std::string(row.text(4))}});
    });
  });
  return states;
}

bool MariadbQueueStore::lock_claim(Link& link, const ListSql& lock, const Claim& claim) {
  bool ours = false;
  const std::array<std::int64_t, 1> ids{static_cast<std::int64_t>(claim.id)};
  run_list(link, lock, {}, std::span<const std::int64_t>(ids), {}, [&](const RowView& row) {
    ours = row.integer(1) == static_cast<std::int64_t>(claim.token) && row.integer(2) == processing_status;
  });
  return ours;
}

void MariadbQueueStore::write_states(Link& link, QueueId id, std::span<const HandlerResult> results) const {
  StateValues states;
  for (const HandlerResult& result : results) {
    states.add(static_cast<std::int64_t>(id), result, now_or_null());
  }
  link.run_many(sql_.save_state, StateValues::columns, states.values);
}

bool MariadbQueueStore::save_states(const Claim& claim, std::span<const HandlerResult> results) {
  bool ours = false;
  work_.transaction(
      [&](Link& link) {
        ours = lock_idle_claim(link, claim);
        if (ours) write_states(link, claim.id, results);
      },
      {"mariadb.queue.save.before_commit", "mariadb.queue.save.after_commit"});
  return ours;
}

bool MariadbQueueStore::lock_idle_claim(Link& link, const Claim& claim) const {
  if (lock_claim(link, sql_.lock_idle, claim)) return true;
  // It is not ours, or somebody has locked it: the latter most likely the handler itself, in a transaction
  // that it has left open. A worker must not stand still for that as long as the server would let it.
  try {
    const ShortLockWait short_wait(link, std::chrono::seconds{1});
    return lock_claim(link, sql_.lock_held, claim);
  } catch (const Error& error) {
    const bool deadlock = error.sqlstate() == "40001";
    if (error.code() != ErrorCode::contention || deadlock) throw;
    // Not `contention`: that would be tried again.
    throw Error(ErrorCode::timeout, {.retryable = true},
                "cannot write about event " + std::to_string(static_cast<std::int64_t>(claim.id)),
                "somebody's open transaction has locked its row",
                "end the transaction in which you have completed it first");
  }
}

std::vector<std::string> MariadbQueueStore::done_in(Tx& tx, QueueId id) {
  std::vector<std::string> done;
  const Value event(static_cast<std::int64_t>(id));
  link_of(tx).run(sql_.done_states, {&event, 1}, [&](const RowView& row) { done.emplace_back(row.text(0)); });
  return done;
}

bool MariadbQueueStore::save_states(Tx& tx, const Claim& claim, std::span<const HandlerResult> results) {
  Link& link = link_of(tx);
  if (!lock_claim(link, sql_.lock_held, claim)) return false;
  whole_or_not(link, results.size() > 1, [&] { write_states(link, claim.id, results); });
  return true;
}

std::size_t MariadbQueueStore::clean_states(std::size_t limit) {
  std::size_t cleaned = 0;
  while (cleaned < limit) {
    const std::size_t most = std::min(limit - cleaned, orphans_at_once);
    std::size_t found = 0;
    std::uint64_t dropped = 0;
    work_.transaction(
        [&](Link& link) {
          std::deque<std::string> handlers;
          std::vector<Value> values;
          found = 0;
          const Value params(most);
          link.run(sql_.find_orphans, {&params, 1}, [&](const RowView& row) {
            ++found;
            handlers.emplace_back(row.text(1));
            values.insert(values.end(), {Value(row.integer(0)), Value(handlers.back())});
          });
          dropped = link.run_many(sql_.drop_state, 2, values);
        },
        {});
    cleaned += static_cast<std::size_t>(dropped);
    if (found < most || dropped == 0) break;
  }
  return cleaned;
}

void MariadbQueueStore::check_schema() {
  work_.run([&](Link& link) {
    require_current_schema(embedded_migrations(), applied_versions(link, schema_), name_);
    link.run(sql_.probe, {}, [](const RowView&) {});
  });
}

}  // namespace postrider::mariadb
