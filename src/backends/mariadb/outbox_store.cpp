// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/outbox_store.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "backends/mariadb/in_list.hpp"
#include "backends/mariadb/migration_target.hpp"
#include "backends/mariadb/tx_work.hpp"
#include "core/failpoint.hpp"
#include "core/utf8.hpp"
#include "postrider/error.hpp"
#include "storage/attempts.hpp"
#include "storage/migrator.hpp"
#include "storage/row_decoder.hpp"

namespace postrider::mariadb {
namespace {

constexpr std::size_t insert_columns = 16;
constexpr std::size_t insert_rows = 1000;  // per statement

void append_row(std::vector<Value>& values, const NewOutboxRow& row, std::string_view owner,
                const Value& now) {
  const Event& event = *row.event;
  const bool json = event.payload_kind() == PayloadKind::json;
  const bool leased = row.lease > Duration::zero();
  const auto deliver_at = event.deliver_at();
  values.insert(
      values.end(),
      {Value(Blob{event.id().view()}), Value(Blob{event.type()}), bytes_or_null(event.aggregate_type()),
       bytes_or_null(event.aggregate_id()), bytes_or_null(event.tenant_id()), bytes_or_null(row.ordering_key),
       json ? Value(Blob{event.payload()}) : Value(nullptr),
       json ? Value(nullptr) : Value(Blob{event.payload()}), bytes_or_null(event.headers_json()),
       deliver_at ? Value(deliver_at->time_since_epoch().count()) : Value(nullptr), now, now,
       Value(event.occurred_at().time_since_epoch().count()), leased ? Value(Blob{owner}) : Value(nullptr),
       now, leased ? Value(bounded(row.lease)) : Value(nullptr)});
}

/// How many of the rows go into the next statement; at least one.
std::size_t batch_of(std::span<const NewOutboxRow> rows) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  while (count < std::min(rows.size(), insert_rows)) {
    bytes += bytes_of(*rows[count].event);
    if (count > 0 && bytes > statement_bytes) break;
    ++count;
  }
  return count;
}

/// Names the id, which the server's message has as "Duplicate entry 'id' for key …".
Error conflict_error(const Error& error) {
  const std::string_view message = error.what();
  constexpr std::string_view mark = "Duplicate entry '";
  const std::size_t begin = message.find(mark);
  const std::size_t end = message.rfind("' for key");
  const std::string id =
      begin == std::string_view::npos || end == std::string_view::npos || end < begin + mark.size()
          ? std::string()
          : " " + std::string(message.substr(begin + mark.size(), end - begin - mark.size()));
  return Error(ErrorCode::conflict, {.sqlstate = error.sqlstate()}, "cannot publish event" + id,
               "an event with this id exists already",
               "give each event an id of its own; to publish at most once, treat this error as success");
}

}  // namespace

/// Results about different rows, so that their order does not matter, as parameters of statements.
struct MariadbOutboxStore::Wave {
  /// What needs nothing but id and token: one statement for all that share a token, as nearly all do.
  using ByToken = std::map<std::int64_t, std::vector<std::string_view>>;

  Value now = nullptr;
  ByToken done{};
  ByToken released{};
  std::vector<Value> retry{};
  std::vector<Value> later{};
  std::vector<Value> dead{};
  /// What those two leave in outbox_attempt.
  struct Attempt {
    std::string_view id;
    std::int64_t token;
    std::int64_t number;
    AttemptOutcome outcome;
    std::string_view error;
  };
  std::vector<Attempt> attempts{};
  std::deque<std::string> errors{};  // borrowed by the values; a deque does not move them

  void add(const Completion& result) {
    const std::string_view id = result.lease.id.view();
    const auto token = static_cast<std::int64_t>(result.lease.token);
    const auto failed = static_cast<std::int64_t>(result.failed);
    const std::int64_t delay = bounded(result.delay);
    switch (result.kind) {
      case Completion::Kind::done:
        done[token].push_back(id);
        break;
      case Completion::Kind::release:
        released[token].push_back(id);
        break;
      case Completion::Kind::retry:
        errors.push_back(stored_error(result.error));
        retry.insert(retry.end(),
                     {Value(failed), Value(errors.back()), now, Value(delay), Value(id), Value(token)});
        add_attempt(result, AttemptOutcome::retry);
        break;
      case Completion::Kind::later:
        errors.push_back(stored_error(result.error));
        later.insert(later.end(), {Value(errors.back()), now, Value(delay), Value(id), Value(token)});
        break;
      case Completion::Kind::dead:
        errors.push_back(stored_error(result.error));
        dead.insert(dead.end(), {Value(failed), Value(errors.back()), now, Value(id), Value(token)});
        add_attempt(result, AttemptOutcome::dead);
        break;
    }
  }

  /// About the result whose error was put down last.
  void add_attempt(const Completion& result, AttemptOutcome outcome) {
    attempts.push_back({.id = result.lease.id.view(),
                        .token = static_cast<std::int64_t>(result.lease.token),
                        .number = static_cast<std::int64_t>(result.failed),
                        .outcome = outcome,
                        .error = utf8_prefix(errors.back(), max_attempt_error_chars)});
  }
};

std::vector<MariadbOutboxStore::Wave> MariadbOutboxStore::waves_of(std::span<const Completion> results,
                                                                   const Value& now) {
  std::vector<const Completion*> sorted;
  sorted.reserve(results.size());
  for (const Completion& result : results) sorted.push_back(&result);
  // By id, so that everybody locks in the same order. Several results about one row keep theirs.
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Completion* a, const Completion* b) { return a->lease.id < b->lease.id; });
  std::vector<Wave> waves(1);
  std::size_t wave = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const bool again = i > 0 && sorted[i - 1]->lease.id == sorted[i]->lease.id;
    wave = again ? wave + 1 : 0;
    if (wave == waves.size()) waves.emplace_back();
    waves[wave].now = now;
    waves[wave].add(*sorted[i]);
  }
  return waves;
}

MariadbOutboxStore::MariadbOutboxStore(const Work& work, const Identifier& schema, Clock* clock,
                                       std::string name)
    : work_(work), schema_(schema), clock_(clock), name_(std::move(name)), sql_(schema) {}

Value MariadbOutboxStore::now_or_null() const {
  return clock_ == nullptr ? Value(nullptr) : Value(clock_->now().time_since_epoch().count());
}

void MariadbOutboxStore::insert(Tx& tx, std::string_view owner, std::span<const NewOutboxRow> rows) {
  Link& link = link_of(tx);
  const Value now = now_or_null();
  // All rows or none, also for a caller that catches the error and commits what else is in the transaction.
  const bool several_statements = rows.size() > 1 && (!link.takes_bulk() || batch_of(rows) < rows.size());
  try {
    whole_or_not(link, several_statements, [&] {
      std::vector<Value> values;
      while (!rows.empty()) {
        const std::size_t count = batch_of(rows);
        values.clear();
        values.reserve(count * insert_columns);
        for (const NewOutboxRow& row : rows.first(count)) append_row(values, row, owner, now);
        link.run_many(sql_.insert, insert_columns, values);
        rows = rows.subspan(count);
      }
    });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::conflict) throw conflict_error(error);
    throw;
  }
  failpoint("outbox.insert.after");
}

std::vector<EventId> MariadbOutboxStore::renew(std::span<const LeaseRef> held, Duration lease) {
  std::set<std::pair<std::string_view, std::int64_t>> refs;
  std::vector<std::string_view> ids;
  ids.reserve(held.size());
  for (const LeaseRef& ref : held) {
    ids.push_back(ref.id.view());
    refs.emplace(ref.id.view(), static_cast<std::int64_t>(ref.token));
  }
  std::sort(ids.begin(), ids.end());  // everybody locks in the same order
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());

  std::vector<EventId> renewed;
  if (held.empty()) return renewed;
  work_.transaction(
      [&](Link& link) {
        renewed.clear();
        std::vector<std::int64_t> seqs;
        run_list(link, sql_.lock_held, {}, ids, {}, [&](const RowView& row) {
          // Given back: a late renewal must not lease the row to nobody.
          if (row.is_null(3)) return;
          if (!refs.contains({row.text(1), row.integer(2)})) return;
          renewed.emplace_back(row.text(1));
          seqs.push_back(row.integer(0));
        });
        const std::array<Value, 2> before{now_or_null(), Value(bounded(lease))};
        run_list(link, sql_.extend, before, seqs, {}, {});
      },
      {"mariadb.renew.before_commit", "mariadb.renew.after_commit"});
  return renewed;
}

std::size_t MariadbOutboxStore::complete(std::span<const Completion> results) {
  if (results.empty()) return 0;
  const std::vector<Wave> waves = waves_of(results, now_or_null());
  std::uint64_t changed = 0;
  work_.transaction(
      [&](Link& link) {
        changed = 0;
        for (const Wave& wave : waves) changed += write(link, wave);
      },
      {"mariadb.complete.before_commit", "mariadb.complete.after_commit"});
  return static_cast<std::size_t>(changed);
}

std::uint64_t MariadbOutboxStore::write(Link& link, const Wave& wave) const {
  std::uint64_t changed = 0;
  for (const auto& [token, ids] : wave.done) {
    const std::array<Value, 2> before{wave.now, Value(token)};
    changed += run_list(link, sql_.finish, before, ids, {}, {});
  }
  for (const auto& [token, ids] : wave.released) {
    const Value before(token);
    changed += run_list(link, sql_.release, {&before, 1}, ids, {}, {});
  }
  log_attempts(link, wave);
  changed += link.run_many(sql_.retry, 6, wave.retry);
  changed += link.run_many(sql_.later, 5, wave.later);
  changed += link.run_many(sql_.bury, 5, wave.dead);
  return changed;
}

void MariadbOutboxStore::log_attempts(Link& link, const Wave& wave) const {
  if (wave.attempts.empty()) return;
  // Bulk cannot INSERT … SELECT. The rows are locked here and stay so: whoever holds one now holds it when
  // its result is written.
  std::vector<std::string_view> ids;
  ids.reserve(wave.attempts.size());
  for (const Wave::Attempt& one : wave.attempts) ids.push_back(one.id);
  struct Holder {
    std::int64_t token = 0;
    std::string owner{};
  };
  std::map<std::string, Holder, std::less<>> holders;
  run_list(link, sql_.lock_held, {}, ids, {}, [&](const RowView& row) {
    holders[std::string(row.text(1))] = {.token = row.integer(2), .owner = std::string(row.text(3))};
  });
  std::vector<Value> lines;
  std::vector<Value> trim;
  for (const Wave::Attempt& one : wave.attempts) {
    const auto holder = holders.find(one.id);
    if (holder == holders.end() || holder->second.token != one.token) continue;
    lines.insert(lines.end(), {Value(one.id), Value(one.token), Value(one.number), wave.now,
                               bytes_or_null(holder->second.owner),
                               Value(static_cast<std::int64_t>(one.outcome)), Value(one.error)});
    if (may_exceed_kept(Token{one.token})) trim.insert(trim.end(), {Value(one.id), Value(one.id)});
  }
  link.run_many(sql_.log_attempt, 7, lines);
  link.run_many(sql_.trim_attempts, 2, trim);
}

std::vector<EventId> MariadbOutboxStore::predecessors(std::string_view key, const EventId& id,
                                                      std::size_t limit) {
  std::vector<EventId> ids;
  const std::array<Value, 3> params{Value(key), Value(id.view()), Value(limit)};
  work_.run([&](Link& link) {
    ids.clear();
    link.run(sql_.predecessors, params, [&](const RowView& row) { ids.emplace_back(row.text(0)); });
  });
  return ids;
}

void MariadbOutboxStore::check_schema() {
  work_.run([&](Link& link) {
    require_current_schema(embedded_migrations(), applied_versions(link, schema_), name_);
    link.run(sql_.probe, {}, [](const RowView&) {});
  });
}

}  // namespace postrider::mariadb
