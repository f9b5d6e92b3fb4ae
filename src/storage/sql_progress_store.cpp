// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_progress_store.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "storage/row_decoder.hpp"
#include "storage/sql_lease_store.hpp"

namespace postrider {
namespace {

/// Pairs per statement: well below what the databases take as parameters.
constexpr std::size_t chunk_size = 500;

template <class T, class Work>
void for_chunks(std::span<const T> items, const Work& work) {
  for (std::size_t at = 0; at < items.size(); at += chunk_size) {
    work(items.subspan(at, std::min(chunk_size, items.size() - at)));
  }
}

/// "(topic, publisher) in (…)", in the words that each database takes and answers by its index.
SqlQuery& in_pairs(SqlQuery& query, BackendKind kind, std::span<const PairName> pairs) {
  query.sql("(topic, publisher) in (").sql(kind == BackendKind::sqlite ? "values " : "");
  const char* comma = "";
  for (const PairName& pair : pairs) {
    query.sql(std::exchange(comma, ", ")).sql("(").bind(pair.topic).sql(", ").bind(pair.publisher).sql(")");
  }
  return query.sql(")");
}

SqlQuery& where_key(SqlQuery& query, const PairName& name, Epoch epoch) {
  query.sql(" where topic = ").bind(name.topic).sql(" and publisher = ").bind(name.publisher);
  return query.sql(" and epoch = ").bind(plain(epoch));
}

std::vector<LedPair> led_of(const Rows& rows) {
  std::vector<LedPair> pairs;
  pairs.reserve(rows.size());
  for (const auto& row : rows.rows) {
    pairs.push_back({.name = {text(row[0]), text(row[1])},
                     .epoch = Epoch{number(row[2])},
                     .position = Position{number(row[3])},
                     .state = pair_state(text(row[4])),
                     .error_count = static_cast<std::int32_t>(number(row[5]))});
  }
  return pairs;
}

}  // namespace

PairState pair_state(std::string_view word) noexcept {
  if (word == to_string(PairState::active)) return PairState::active;
  return word == to_string(PairState::paused) ? PairState::paused : PairState::failed;
}

SqlProgressStore::SqlProgressStore(SqlDialect dialect) : dialect_(std::move(dialect)) {}

std::size_t SqlProgressStore::add(std::span<const NewPair> pairs) {
  std::size_t made = 0;
  for_chunks(pairs, [&](std::span<const NewPair> chunk) {
    SqlQuery query(dialect_);
    query.sql(dialect_.kind == BackendKind::mariadb ? "insert ignore into " : "insert into ");
    query.table(progress_table).sql(" (topic, publisher, last_position, created_at, updated_at) values ");
    const char* comma = "(";
    for (const NewPair& pair : chunk) {
      query.sql(std::exchange(comma, ", (")).bind(pair.name.topic).sql(", ").bind(pair.name.publisher);
      query.sql(", ").bind(plain(pair.start)).sql(", ").now().sql(", ").now().sql(")");
    }
    if (dialect_.kind != BackendKind::mariadb) query.sql(" on conflict do nothing");
    made += static_cast<std::size_t>(query.run().affected);
  });
  return made;
}

SqlQuery SqlProgressStore::led_pairs(std::string_view node) const {
  SqlQuery query(dialect_);
  query.sql("select topic, publisher, epoch, last_position, status, error_count from ").table(progress_table);
  query.sql(" where leader_instance = ").bind(node);
  return query;
}

SqlQuery& SqlProgressStore::orphaned(SqlQuery& query, std::span<const std::string> dead) const {
  query.sql("(leader_instance is null");
  for (const std::string& node : dead) query.sql(" or leader_instance = ").bind(node);
  query.sql(" or not exists (select 1 from ").table(lease_table);
  return query.sql(" as l where l.owner = leader_instance and l.lease_until > ").now().sql("))");
}

std::vector<LedPair> SqlProgressStore::take(const LeaseFence& fence, Taking which,
                                            std::span<const PairName> pairs,
                                            std::span<const std::string> dead) {
  std::vector<LedPair> taken;
  if (pairs.empty()) return taken;
  Transaction tx = dialect_.begin();
  for_chunks(pairs, [&](std::span<const PairName> chunk) {
    SqlQuery query(dialect_);
    query.sql("update ")
        .table(progress_table)
        .sql(" set epoch = epoch + 1, leader_instance = ")
        .bind(fence.owner);
    query.sql(", leader_since = ").now().sql(", updated_at = ").now().sql(" where ");
    in_pairs(query, dialect_.kind, chunk).sql(" and exists (select 1 from ").table(lease_table);
    query.sql(" as mine where mine.name = ").bind(fence.name).sql(" and mine.owner = ").bind(fence.owner);
    query.sql(" and mine.epoch = ").bind(plain(fence.epoch)).sql(" and mine.lease_until > ").now().sql(")");
    if (which == Taking::orphans) orphaned(query.sql(" and "), dead);
    if (query.run(tx).affected == 0) return;
    SqlQuery look = led_pairs(fence.owner);
    std::vector<LedPair> now = led_of(in_pairs(look.sql(" and "), dialect_.kind, chunk).run(tx));
    std::move(now.begin(), now.end(), std::back_inserter(taken));
  });
  tx.commit();
  return taken;
}

std::vector<LedPair> SqlProgressStore::led(std::string_view node) {
  return led_of(led_pairs(node).run());
}

void SqlProgressStore::give_back(std::string_view node, std::span<const PairName> pairs) {
  for_chunks(pairs, [&](std::span<const PairName> chunk) {
    SqlQuery query(dialect_);
    query.sql("update ").table(progress_table).sql(" set leader_instance = null, leader_since = null");
    query.sql(", updated_at = ").now().sql(" where leader_instance = ").bind(node).sql(" and ");
    in_pairs(query, dialect_.kind, chunk).run();
  });
}

bool SqlProgressStore::advance_one(Tx& tx, const ProgressStep& step) const {
  SqlQuery query(dialect_);
  query.sql("update ").table(progress_table).sql(" set last_position = ").bind(plain(step.to));
  query.sql(", error_count = 0, last_error = null, updated_at = ").now();
  if (step.published) query.sql(", last_published_at = ").now();
  where_key(query, step.name, step.epoch).sql(" and last_position = ").bind(plain(step.from));
  if (query.run(tx).affected == 0) return false;
  if (!step.dead.has_value()) return true;
  // A rewound pair may refuse the same event again.
  SqlQuery old(dialect_);
  old.sql("delete from ").table(dead_letter_table).sql(" where topic = ").bind(step.name.topic);
  old.sql(" and publisher = ").bind(step.name.publisher).sql(" and position = ").bind(plain(step.to)).run(tx);
  const std::string error = stored_error(*step.dead);
  SqlQuery note(dialect_);
  note.sql("insert into ").table(dead_letter_table);
  note.sql(" (topic, publisher, position, error, failed_at) values (").bind(step.name.topic).sql(", ");
  note.bind(step.name.publisher).sql(", ").bind(plain(step.to)).sql(", ").bind(error).sql(", ").now();
  note.sql(")").run(tx);
  return true;
}

void SqlProgressStore::advance_together(std::span<const ProgressStep> steps, std::vector<bool>& done) const {
  std::map<PairName, std::size_t> index;
  SqlQuery query(dialect_);
  query.sql("update ").table(progress_table).sql(" as p set last_position = v.next, error_count = 0");
  query.sql(", last_error = null, updated_at = ")
      .now()
      .sql(", last_published_at = case when v.published then ");
  query.now().sql(" else p.last_published_at end from (values ");
  const char* comma = "(";
  for (const ProgressStep& step : steps) {
    index.emplace(step.name, done.size());
    done.push_back(false);
    query.sql(std::exchange(comma, ", (")).bind(step.name.topic).sql("::varchar, ").bind(step.name.publisher);
    query.sql("::varchar, ").bind(plain(step.epoch)).sql("::bigint, ").bind(plain(step.from));
    query.sql("::bigint, ").bind(plain(step.to)).sql(step.published ? "::bigint, true)" : "::bigint, false)");
  }
  query.sql(") as v(topic, publisher, epoch, old, next, published) where p.topic = v.topic");
  query.sql(" and p.publisher = v.publisher and p.epoch = v.epoch and p.last_position = v.old");
  const Rows rows = query.sql(" returning p.topic, p.publisher").run();
  for (const auto& row : rows.rows) done[index.at({text(row[0]), text(row[1])})] = true;
}

std::vector<bool> SqlProgressStore::advance(std::span<const ProgressStep> steps) {
  std::vector<bool> done;
  done.reserve(steps.size());
  const bool any_dead =
      std::any_of(steps.begin(), steps.end(), [](const ProgressStep& step) { return step.dead.has_value(); });
  if (dialect_.kind == BackendKind::postgres && !any_dead) {
    for_chunks(steps, [&](std::span<const ProgressStep> chunk) { advance_together(chunk, done); });
    return done;
  }
  if (steps.empty()) return done;
  Transaction tx = dialect_.begin();
  for (const ProgressStep& step : steps) done.push_back(advance_one(tx, step));
  tx.commit();
  return done;
}

std::vector<bool> SqlProgressStore::fail(std::span<const PairFailure> failures) {
  std::vector<bool> done;
  for (const PairFailure& failure : failures) {
    const std::string error = stored_error(failure.error);
    SqlQuery query(dialect_);
    query.sql("update ").table(progress_table).sql(" set last_error = ").bind(error);
    query.sql(", updated_at = ").now();
    if (failure.counted) query.sql(", error_count = error_count + 1");
    if (failure.stop) query.sql(", status = 'FAILED'");
    done.push_back(where_key(query, failure.name, failure.epoch).run().affected > 0);
  }
  return done;
}

PairCensus SqlProgressStore::census(std::string_view node, std::span<const std::string> dead) {
  PairCensus census;
  SqlQuery count(dialect_);
  count.sql("select leader_instance, count(*), sum(epoch) from ").table(progress_table);
  for (const auto& row : count.sql(" group by leader_instance").run().rows) {
    census.shares.push_back({.leader = text(row[0]), .pairs = number(row[1]), .epochs = number(row[2])});
  }
  SqlQuery rest = led_pairs(node);
  census.at_rest = led_of(rest.sql(" and status <> 'ACTIVE'").run());
  SqlQuery look(dialect_);
  look.sql("select topic, publisher from ").table(progress_table).sql(" where ");
  for (const auto& row : orphaned(look, dead).sql(" order by topic, publisher").run().rows) {
    census.orphans.push_back({text(row[0]), text(row[1])});
  }
  return census;
}

}  // namespace postrider
