// SPDX-License-Identifier: Apache-2.0
// The part of a claim that is about rows with an ordering key.
#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "backends/mariadb/in_list.hpp"
#include "backends/mariadb/queue_claim.hpp"

namespace postrider::mariadb {
namespace {

constexpr std::size_t index_page = 512;        // rows of the index
constexpr std::size_t long_page_size = 4'096;  // where keys have many rows
constexpr std::size_t heads_at_once = 256;     // per statement that locks
constexpr std::size_t runs_at_once = 16;  // per statement that reads what follows heads; a size of ListSql

}  // namespace

void QueueClaimer::take_ordered(std::size_t most) {
  const std::size_t end = taken_ + std::min(most, room());
  extend_open(end);  // what an earlier call had no room for
  while (taken_ < end && (!heads_.empty() || fetch_heads())) take_heads(end - taken_);
  extend_open(end);  // what had no room beside rows that then were set aside
}

/// Goes on with every run that may have more, until so many rows are taken in all.
void QueueClaimer::extend_open(std::size_t end) {
  for (;;) {
    std::vector<KeyRun*> open;
    for (KeyRun& run : runs_) {
      if (run.open) open.push_back(&run);
    }
    // Each round closes the first of them or takes it further.
    if (open.empty() || taken_ >= end) return;
    for (std::size_t i = 0; i < open.size() && taken_ < end; i += runs_at_once) {
      extend(std::span(open).subspan(i, std::min(runs_at_once, open.size() - i)), end - taken_);
    }
  }
}

/// The next page of keys. False when there are no more, or enough were looked at.
bool QueueClaimer::fetch_heads() {
  while (!round_ && keys_seen_ < most_keys && heads_.empty()) {
    const std::size_t page = long_keys_ ? long_page_size : index_page;
    const std::array<Value, 2> params{Value(walked_to_ ? *walked_to_ : std::string_view{}), Value(page)};
    std::size_t rows = 0;
    bool past_the_beginning = false;
    link_.run(walked_to_ ? sql_.next_heads : sql_.first_heads, params, [&](const RowView& row) {
      rows += static_cast<std::size_t>(row.integer(2));
      if (from_beginning_ && plan_.last_key && row.text(0) > *plan_.last_key) past_the_beginning = true;
      if (past_the_beginning) return;
      heads_.push_back({.key = std::string(row.text(0)), .id = row.integer(1), .eligible = false});
    });
    keys_seen_ += heads_.size();
    const bool more = rows == page && !past_the_beginning;
    if (more) {
      long_keys_ = long_keys_ || heads_.size() < index_page / 8;
      walked_to_ = heads_.back().key;
    } else if (from_beginning_) {
      reached_end_ = true;
      round_ = true;
    } else {
      reached_end_ = true;
      from_beginning_ = true;
      walked_to_.reset();
    }
  }
  if (heads_.empty()) return false;
  std::vector<std::int64_t> ids;
  for (const Head& head : heads_) ids.push_back(head.id);
  std::sort(ids.begin(), ids.end());
  std::unordered_set<std::int64_t> eligible;
  const std::array<Value, 3> after{Value(now_), Value(now_), Value(Blob{types_})};
  run_list(link_, sql_.eligible, {}, ids, after,
           [&](const RowView& row) { eligible.insert(row.integer(0)); });
  for (Head& head : heads_) head.eligible = eligible.contains(head.id);
  return true;
}

/// Locks some of the heads that were found, and what follows them.
void QueueClaimer::take_heads(std::size_t most) {
  std::vector<Head> chosen;
  const std::size_t at_once = std::min(most, request_.run_limit > 1 ? runs_at_once : heads_at_once);
  for (; !heads_.empty() && chosen.size() < at_once; heads_.pop_front()) {
    last_key_ = heads_.front().key;
    if (heads_.front().eligible) chosen.push_back(std::move(heads_.front()));
  }
  std::vector<std::int64_t> ids;
  ids.reserve(chosen.size());
  for (const Head& head : chosen) ids.push_back(head.id);
  Rows rows = lock(ids);
  std::vector<KeyRun*> extensible;
  for (Head& head : chosen) {
    const auto found = rows.find(head.id);
    if (found == rows.end() || found->second.event.ordering_key != head.key) continue;
    const Fate fate = consider(found->second);
    if (fate == Fate::left) continue;
    KeyRun& run = runs_.emplace_back(KeyRun{.key = std::move(head.key), .last_id = head.id});
    if (fate == Fate::taken) {
      run.rows.push_back(std::move(found->second));
      --most;
    }
    run.open = run.rows.size() < request_.run_limit;
    if (run.open) extensible.push_back(&run);
  }
  if (most > 0 && !extensible.empty()) extend(extensible, most);
}

/// Goes on with these runs (at most `runs_at_once`), taking `most` rows at most.
void QueueClaimer::extend(std::span<KeyRun* const> runs, std::size_t most) {
  const ListSql::Sized sized = sql_.followers.for_count(runs.size());
  const std::size_t length = std::min(request_.run_limit, most);
  std::vector<Value> params;
  std::unordered_map<std::string_view, std::size_t> at;
  for (std::size_t i = 0; i < sized.places; ++i) {
    const bool used = i < runs.size();
    if (used) at.emplace(runs[i]->key, i);
    params.insert(params.end(), {Value(now_), Value(now_), Value(Blob{types_}),
                                 used ? Value(Blob{runs[i]->key}) : Value(nullptr),
                                 Value(used ? runs[i]->last_id : 0), Value(length)});
  }
  struct Planned {
    std::vector<std::int64_t> ids{};
    bool ended = false;  // by a row that cannot be had
  };
  std::vector<Planned> plans(runs.size());
  link_.run(sized.sql, params, [&](const RowView& row) {
    Planned& plan = plans[at.at(row.text(0))];
    if (!row.is_null(2) && row.integer(2) != 0 && !plan.ended) {
      plan.ids.push_back(row.integer(1));
    } else {
      plan.ended = true;
    }
  });
  std::vector<std::int64_t> wanted;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Planned& plan = plans[i];
    if (plan.ids.size() < length) plan.ended = true;
    const std::size_t here =
        std::min({plan.ids.size(), request_.run_limit - runs[i]->rows.size(), most - wanted.size()});
    if (here < plan.ids.size()) {
      plan.ids.resize(here);
      plan.ended = false;
    }
    wanted.insert(wanted.end(), plan.ids.begin(), plan.ids.end());
  }
  Rows rows = lock(wanted);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    KeyRun& run = *runs[i];
    for (const std::int64_t id : plans[i].ids) {
      const auto found = rows.find(id);
      const bool same = found != rows.end() && found->second.event.ordering_key == run.key;
      const Fate fate = same ? consider(found->second) : Fate::left;
      if (fate == Fate::left) {  // somebody else has it, or it was changed: the run ends before it
        plans[i].ended = true;
        break;
      }
      run.last_id = id;
      if (fate == Fate::taken) run.rows.push_back(std::move(found->second));
    }
    run.open = !plans[i].ended && run.rows.size() < request_.run_limit;
  }
}

QueueClaimer::Rows QueueClaimer::lock(const std::vector<std::int64_t>& ids) {
  Rows rows;
  std::vector<std::int64_t> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  const std::array<Value, 3> after{Value(now_), Value(now_), Value(Blob{types_})};
  run_list(link_, sql_.lock_rows, {}, sorted, after, [&](const RowView& row) {
    Row locked = read_row(row);
    const std::int64_t id = locked.id;
    rows.emplace(id, std::move(locked));
  });
  return rows;
}

}  // namespace postrider::mariadb
