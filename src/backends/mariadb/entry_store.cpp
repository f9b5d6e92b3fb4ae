// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/entry_store.hpp"

#include <algorithm>

#include "backends/mariadb/tx_work.hpp"
#include "core/failpoint.hpp"
#include "postrider/error.hpp"

namespace postrider::mariadb {
namespace {

constexpr int attempts = 5;
constexpr std::size_t entry_columns = 13;

void append_row(std::vector<Value>& values, const Entry& entry, const Value& now) {
  for (const auto column :
       {&Entry::application_id, &Entry::correlation_id, &Entry::process_name, &Entry::process_status,
        &Entry::step, &Entry::details, &Entry::target_system, &Entry::originating_system, &Entry::user_id,
        &Entry::idempotency_key, &Entry::extras}) {
    const bool always = column == &Entry::correlation_id;  // never NULL: it leads an index that pages follow
    values.push_back(always ? Value(Blob{entry.*column}) : bytes_or_null(entry.*column));
  }
  values.emplace_back(entry.occurred_at.time_since_epoch().count());
  values.push_back(now);
}

/// How many go into the next statement: a size of ListSql, and not too many bytes.
std::size_t piece_of(std::span<const Entry> entries, std::span<const std::size_t> places) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  while (count < std::min(places.size(), ListSql::max_size)) {
    bytes += entries[places[count]].bytes();
    if (count > 0 && bytes > statement_bytes) break;
    ++count;
  }
  return *(std::upper_bound(ListSql::sizes.begin(), ListSql::sizes.end(), count) - 1);
}

}  // namespace

MariadbEntryStore::MariadbEntryStore(const Work& work, const Identifier& schema, Clock* clock,
                                     SqlDialect dialect)
    : work_(work),
      clock_(clock),
      step_("SELECT @@SESSION.auto_increment_increment"),
      insert_("INSERT INTO " + schema.str() +
                  "_event_log_entries (application_id, correlation_id, process_name, process_status, step, "
                  "details, target_system, originating_system, user_id, idempotency_key, extras, "
                  "occurred_at, received_at) VALUES {list}",
              "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " POSTRIDER_AT ", " POSTRIDER_NOW ")"),
      first_with_key_("SELECT application_id, idempotency_key, id FROM " + schema.str() +
                          "_event_log_entries FORCE INDEX (event_log_entries_key) WHERE {list}",
                      "(application_id = ? AND idempotency_key = ?)", " OR "),
      purge_(dialect),
      reader_(std::move(dialect)) {}

void MariadbEntryStore::find_first(Link& link, const Keys& keys, std::vector<InsertedEntry>& answers) const {
  std::vector<Value> params;
  for (auto at = keys.begin(); at != keys.end();) {
    const auto left = static_cast<std::size_t>(std::distance(at, keys.end()));
    const std::size_t count = std::min(left, ListSql::max_size);
    const ListSql::Sized sized = first_with_key_.for_count(count);
    params.clear();
    for (std::size_t i = 0; i < sized.places; ++i) {
      params.emplace_back(Blob{at->first.first});
      params.emplace_back(Blob{at->first.second});
      if (i + 1 < count) ++at;  // the places that are left over repeat the last one
    }
    ++at;
    link.run(sized.sql, params, [&](const RowView& row) {
      const auto found = keys.find({row.text(0), row.text(1)});
      if (found == keys.end()) return;
      answers[found->second] = {.id = EntryId{row.integer(2)}, .duplicate = true};
    });
  }
}

void MariadbEntryStore::insert_new(Link& link, std::span<const Entry> entries,
                                   std::span<const std::size_t> places,
                                   std::vector<InsertedEntry>& answers) const {
  std::int64_t step = 1;
  link.run(step_, {}, [&](const RowView& row) { step = row.integer(0); });
  const Value now = clock_ == nullptr ? Value(nullptr) : Value(clock_->now().time_since_epoch().count());
  std::vector<Value> values;
  while (!places.empty()) {
    const std::size_t count = piece_of(entries, places);
    values.clear();
    values.reserve(count * entry_columns);
    for (const std::size_t place : places.first(count)) append_row(values, entries[place], now);
    link.run(insert_.for_count(count).sql, values, {});
    // All numbers of a statement that says how many rows it has are reserved at once.
    const std::int64_t first = link.insert_id();
    for (std::size_t i = 0; i < count; ++i) {
      answers[places[i]].id = EntryId{first + static_cast<std::int64_t>(i) * step};
    }
    places = places.subspan(count);
  }
}

std::vector<InsertedEntry> MariadbEntryStore::insert(std::span<const Entry> entries) {
  std::vector<InsertedEntry> answers;
  if (entries.empty()) return answers;
  Keys keys;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].idempotency_key.empty()) {
      keys.try_emplace({entries[i].application_id, entries[i].idempotency_key}, i);
    }
  }
  const auto first_of = [&](std::size_t i) {
    const auto found = keys.find({entries[i].application_id, entries[i].idempotency_key});
    return found == keys.end() ? i : found->second;
  };
  const auto body = [&](Link& link) {
    answers.assign(entries.size(), {});
    find_first(link, keys, answers);
    std::vector<std::size_t> fresh;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (first_of(i) == i && !answers[i].duplicate) fresh.push_back(i);
    }
    insert_new(link, entries, fresh, answers);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (first_of(i) != i) answers[i] = {.id = answers[first_of(i)].id, .duplicate = true};
    }
  };
  for (int attempt = 1;; ++attempt) {
    try {
      work_.transaction(body, {"mariadb.entries.before_commit", "mariadb.entries.after_commit"});
      return answers;
    } catch (const Error& error) {
      // Another node was quicker with one of the keys: the next look finds it.
      if (error.code() != ErrorCode::conflict || attempt == attempts) throw;
    }
  }
}

}  // namespace postrider::mariadb
