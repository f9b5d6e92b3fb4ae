// SPDX-License-Identifier: Apache-2.0
// MariadbQueueStore::settle, and the numbers of the log.
//
// The rows that move to the log travel through this process: they are read where they are locked, deleted,
// and only then are numbers taken and the log written. INSERT … SELECT would need the rows until the log is
// written, so that the DELETE came after the numbers; but a DELETE may have to wait for a claim (which locks
// entries of the due index as it passes them), and whoever holds the numbers holds up all others.
#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "backends/mariadb/in_list.hpp"
#include "backends/mariadb/lock_wait.hpp"
#include "backends/mariadb/queue_attempts.hpp"
#include "backends/mariadb/queue_states.hpp"
#include "backends/mariadb/queue_store.hpp"
#include "backends/mariadb/tx_work.hpp"
#include "postrider/error.hpp"
#include "storage/handler_results.hpp"
#include "storage/row_decoder.hpp"

namespace postrider::mariadb {
namespace {

using Kind = Settlement::Kind;
using Cell = std::optional<std::string>;

constexpr std::int64_t processing = static_cast<std::int64_t>(QueueStatus::processing);
constexpr std::size_t numbers_at_once = 1000;
/// Locks that were in the way once will be for a while.
constexpr Duration exact_time = std::chrono::seconds{30};

SteadyPoint steady_now() {
  // Not the storage's clock: locks are waited for in real time.
  return std::chrono::steady_clock::now();
}

/// The positions of `lock_whole`.
struct WholeColumn {
  enum : std::size_t { id, token, status, first_moved };
};
constexpr std::size_t first_blob = 0;  // among the moved columns: event_id
constexpr std::size_t last_blob = 8;   // headers; behind it numbers and times, which are written as texts

std::int64_t id_of(const Settlement& one) {
  return static_cast<std::int64_t>(one.claim.id);
}
std::int64_t token_of(const Settlement& one) {
  return static_cast<std::int64_t>(one.claim.token);
}

/// What the queue has to say about an id.
struct Found {
  std::int64_t token = 0;
  bool processing = false;
};

Settled answer_of(const Settlement& one, const Found& found) {
  if (found.token != token_of(one)) return Settled::stale;
  if (found.processing) return Settled::applied;
  return one.kind == Kind::finalize ? Settled::stale : Settled::repeated;  // it was given back
}

/// One call of settle, inside one transaction.
class Settling {
 public:
  struct How {
    bool wait = false;     ///< for rows that somebody else has locked; otherwise they are `busy`
    bool exactly = false;  ///< never touch any other row
  };
  Settling(Link& link, const QueueSql& sql, std::span<const Settlement> settlements, const Value& now,
           How how)
      : link_(link), sql_(sql), settlements_(settlements), now_(now), how_(how) {}

  std::vector<Settled> run() {
    if (!how_.wait && may_scan() && all_finalize() && take_out()) {
      answers_.assign(settlements_.size(), Settled::applied);
      finalize();
      return std::move(answers_);
    }
    lock();
    answer();
    log_attempts([&](std::size_t i) { return answers_[i] == Settled::applied; });
    give_back();
    finalize();
    return std::move(answers_);
  }

 private:
  void lock() {
    std::vector<std::int64_t> all;
    std::vector<std::int64_t> finalized;
    for (const Settlement& one : settlements_) {
      all.push_back(id_of(one));
      if (one.kind == Kind::finalize) finalized.push_back(id_of(one));
    }
    // Everybody locks in the same order.
    std::sort(all.begin(), all.end());
    std::sort(finalized.begin(), finalized.end());
    if (finalized.size() < all.size()) {
      run_list(link_, how_.wait ? sql_.lock_held : sql_.lock_idle, {}, all, {},
               [&](const RowView& row) { see(row); });
    }
    run_list(link_, how_.wait ? sql_.lock_whole : sql_.lock_whole_idle, {}, finalized, {},
             [&](const RowView& row) { keep(row); });
  }

  /// What almost always happens, in one statement: all are finalised, and all are still ours. False when one
  /// is not: then nothing has happened, in a new transaction.
  [[nodiscard]] bool take_out() {
    std::vector<std::int64_t> ids;
    ids.reserve(settlements_.size());
    for (const Settlement& one : settlements_) ids.push_back(id_of(one));
    std::sort(ids.begin(), ids.end());
    // Without a lock: should a row not be ours, none of this has happened.
    log_attempts([](std::size_t) { return true; });
    run_list(link_, sql_.take_out, {}, ids, {}, [&](const RowView& row) { keep(row); });
    const bool all_ours = std::all_of(settlements_.begin(), settlements_.end(), [&](const Settlement& one) {
      const auto found = found_.find(id_of(one));
      return found != found_.end() && answer_of(one, found->second) == Settled::applied;
    });
    if (all_ours) {
      removed_ = true;
      return true;
    }
    link_.rollback();
    link_.begin();
    found_.clear();
    whole_.clear();
    return false;
  }
  [[nodiscard]] bool all_finalize() const {
    return std::all_of(settlements_.begin(), settlements_.end(),
                       [](const Settlement& one) { return one.kind == Kind::finalize; });
  }
  /// Lines about those that failed, as long as their rows are as the claim left them.
  template <class Wanted>
  void log_attempts(const Wanted& wanted) {
    AttemptLines lines;
    for (std::size_t i = 0; i < settlements_.size(); ++i) {
      if (wanted(i)) lines.add(settlements_[i]);
    }
    lines.write(link_, sql_, now_);
  }
  /// Whether a DELETE over a list may be used, which may read more than the list. Only MariaDB bounds the
  /// time that it may wait there; and taking bulk is how MariaDB shows itself.
  [[nodiscard]] bool may_scan() const { return !how_.exactly && link_.takes_bulk(); }

  void keep(const RowView& row) {
    see(row);
    std::vector<Cell>& cells = whole_[row.integer(WholeColumn::id)];
    cells.reserve(row.size() - WholeColumn::first_moved);
    for (std::size_t i = WholeColumn::first_moved; i < row.size(); ++i) {
      cells.push_back(row.is_null(i) ? Cell{} : Cell{std::string(row.text(i))});
    }
  }

  void see(const RowView& row) {
    found_[row.integer(0)] = {.token = row.integer(1), .processing = row.integer(2) == processing};
  }

  void answer() {
    std::vector<std::int64_t> missing;
    for (const Settlement& one : settlements_) {
      if (!found_.contains(id_of(one))) missing.push_back(id_of(one));
    }
    // Looked for in the queue first: what goes over into the log meanwhile is then found there.
    std::unordered_set<std::int64_t> locked;
    run_list(link_, sql_.present, {}, missing, {},
             [&](const RowView& row) { locked.insert(row.integer(0)); });
    std::unordered_map<std::int64_t, std::int64_t> logged;
    run_list(link_, sql_.find_logged, {}, missing, {},
             [&](const RowView& row) { logged[row.integer(0)] = row.integer(1); });
    for (const Settlement& one : settlements_) {
      if (const auto found = found_.find(id_of(one)); found != found_.end()) {
        answers_.push_back(answer_of(one, found->second));
      } else if (locked.contains(id_of(one))) {
        answers_.push_back(Settled::busy);
      } else if (const auto entry = logged.find(id_of(one)); entry != logged.end()) {
        answers_.push_back(entry->second == token_of(one) ? Settled::repeated : Settled::stale);
      } else {
        answers_.push_back(Settled::unknown);
      }
    }
  }

  void give_back() {
    std::vector<std::int64_t> released;
    std::vector<Value> postponed;
    std::vector<Value> retried;
    StateValues states;
    std::deque<std::string> errors;  // borrowed by the values; a deque does not move them
    for (std::size_t i = 0; i < settlements_.size(); ++i) {
      const Settlement& one = settlements_[i];
      if (answers_[i] != Settled::applied) continue;
      if (one.kind == Kind::release) released.push_back(id_of(one));
      if (one.kind == Kind::release && one.delay > Duration::zero()) {
        postponed.insert(postponed.end(), {now_, Value(bounded(one.delay)), Value(id_of(one))});
      }
      if (one.kind != Kind::retry) continue;
      errors.push_back(stored_error(one.error));
      retried.insert(retried.end(), {now_, Value(bounded(one.delay)), bytes_or_null(errors.back()), now_,
                                     Value(id_of(one))});
      for (const HandlerResult& result : one.results) {
        states.add(id_of(one), result, now_);
      }
    }
    run_list(link_, sql_.release, {&now_, 1}, released, {}, {});
    link_.run_many(sql_.postpone, 3, postponed);
    link_.run_many(sql_.retry, 5, retried);
    link_.run_many(sql_.save_state, StateValues::columns, states.values);
  }

  void finalize() {
    std::vector<const Settlement*> finalized;
    for (std::size_t i = 0; i < settlements_.size(); ++i) {
      if (answers_[i] != Settled::applied || settlements_[i].kind != Kind::finalize) continue;
      finalized.push_back(&settlements_[i]);
    }
    if (finalized.empty()) return;
    if (!removed_) {
      std::vector<std::int64_t> ids;
      ids.reserve(finalized.size());
      for (const Settlement* one : finalized) ids.push_back(id_of(*one));
      std::sort(ids.begin(), ids.end());
      remove(ids);
    }
    std::deque<std::string> results;
    for (const Settlement* one : finalized) results.push_back(encode_results(one->results));
    // From here on we hold up everybody else who finalises.
    std::int64_t number = take_numbers(link_, sql_, finalized.size());
    std::vector<Value> values;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < finalized.size(); ++i) {
      const std::vector<Cell>& cells = whole_.at(id_of(*finalized[i]));
      std::size_t size = results[i].size() + 1024;
      for (const Cell& cell : cells) size += cell.has_value() ? cell->size() : 0;
      if (bytes > 0 && bytes + size > statement_bytes) {
        link_.run_many(sql_.log, QueueSql::log_columns, values);
        values.clear();
        bytes = 0;
      }
      bytes += size;
      values.insert(values.end(), {Value(id_of(*finalized[i])), Value(token_of(*finalized[i]))});
      for (std::size_t n = 0; n < cells.size(); ++n) values.push_back(parameter(cells[n], n));
      values.insert(values.end(), {Value(++number), Value(static_cast<std::int64_t>(finalized[i]->status)),
                                   bytes_or_null(results[i]), now_});
    }
    link_.run_many(sql_.log, QueueSql::log_columns, values);
  }

  void remove(const std::vector<std::int64_t>& ids) {
    if (may_scan()) {
      run_list(link_, sql_.remove, {}, ids, {}, {});
      return;
    }
    std::string list;
    for (const std::int64_t id : ids) list.append(list.empty() ? "[" : ",").append(std::to_string(id));
    list += ']';
    const Value param(list);
    link_.run(sql_.remove_exactly, {&param, 1}, {});
  }

  static Value parameter(const Cell& cell, std::size_t column) {
    if (!cell.has_value()) return nullptr;
    return column >= first_blob && column <= last_blob ? Value(Blob{*cell}) : Value(*cell);
  }

 public:
  /// Locks the numbers, gives some to entries that wait for theirs, and takes `count`. Returns the one before
  /// the first.
  static std::int64_t take_numbers(Link& link, const QueueSql& sql, std::size_t count) {
    const Value how_many(count);
    if (link.run(sql.take_numbers, {&how_many, 1}, {}) != 1) {
      throw Error(ErrorCode::schema, "cannot write to the event log", "event_log_head has lost its row",
                  "insert (1, highest seq of event_log) into it");
    }
    std::int64_t last = 0;
    bool unnumbered = false;
    link.run(sql.last_number, {}, [&](const RowView& row) {
      last = row.integer(0);
      unnumbered = row.integer(1) != 0;
    });
    last -= static_cast<std::int64_t>(count);
    return unnumbered ? give_numbers(link, sql, last).last : last;
  }

  struct Given {
    std::int64_t last = 0;
    std::size_t count = 0;
  };
  /// With the numbers locked: gives those after `last` to committed entries that have none.
  static Given give_numbers(Link& link, const QueueSql& sql, std::int64_t last) {
    std::vector<Value> values;
    Given given{.last = last};
    const Value limit(numbers_at_once);
    link.run(sql.lock_unnumbered, {&limit, 1}, [&](const RowView& row) {
      values.insert(values.end(), {Value(++given.last), Value(row.integer(0))});
      ++given.count;
    });
    if (given.count == 0) return given;
    link.run_many(sql.give_number, 2, values);
    const Value more(given.count);
    link.run(sql.take_numbers, {&more, 1}, {});
    return given;
  }

 private:
  Link& link_;
  const QueueSql& sql_;
  std::span<const Settlement> settlements_;
  const Value now_;
  const How how_;
  bool removed_ = false;
  std::unordered_map<std::int64_t, Found> found_;
  std::unordered_map<std::int64_t, std::vector<Cell>> whole_;  // the moved columns
  std::vector<Settled> answers_;
};

}  // namespace

std::vector<Settled> MariadbQueueStore::settle(std::span<const Settlement> settlements) {
  std::vector<Settled> answers;
  if (settlements.empty()) return answers;
  constexpr Work::Points points{"mariadb.queue.settle.before_commit", "mariadb.queue.settle.after_commit"};
  work_.transaction(
      [&](Link& link) {
        const bool exactly = steady_now() < exactly_until_.load();
        try {
          answers = Settling(link, sql_, settlements, now_or_null(), {.exactly = exactly}).run();
        } catch (const Error& error) {
          if (error.code() == ErrorCode::contention) exactly_until_ = steady_now() + exact_time;
          throw;
        }
      },
      points);
  // Mostly it is a claim or a heartbeat that passes by, worth a moment each. If it is more than that, the
  // others need not wait for the same lesson.
  bool patient = true;
  for (std::size_t i = 0; i < settlements.size() && patient; ++i) {
    if (answers[i] != Settled::busy) continue;
    work_.transaction(
        [&](Link& link) {
          const ShortLockWait short_wait(link, std::chrono::seconds{1});
          try {
            answers[i] = Settling(link, sql_, settlements.subspan(i, 1), now_or_null(),
                                  {.wait = true, .exactly = true})
                             .run()
                             .front();
          } catch (const Error& error) {
            if (error.code() != ErrorCode::contention) throw;
            patient = false;
          }
        },
        points);
  }
  return answers;
}

Settled MariadbQueueStore::settle(Tx& tx, const Settlement& settlement) {
  if (settlement.kind != Kind::finalize) {
    throw Error(ErrorCode::invalid_argument, "cannot settle an event in a user's transaction",
                "it can only be finalised there");
  }
  Link& link = link_of(tx);
  const std::array<std::int64_t, 1> id{id_of(settlement)};
  const std::span<const std::int64_t> ids(id);
  std::optional<Found> found;
  run_list(link, sql_.lock_held, {}, ids, {}, [&](const RowView& row) {
    found = Found{.token = row.integer(1), .processing = row.integer(2) == processing};
  });
  if (!found) {
    std::optional<std::int64_t> logged;
    const auto look = [&](Link& where) {
      run_list(where, sql_.find_logged, {}, ids, {}, [&](const RowView& row) { logged = row.integer(1); });
    };
    look(link);
    // The caller's transaction may see an older state than the one that its locks are about.
    if (!logged) work_.run(look);
    if (!logged) return Settled::unknown;
    return *logged == token_of(settlement) ? Settled::repeated : Settled::stale;
  }
  const Settled answer = answer_of(settlement, *found);
  if (answer != Settled::applied) return answer;
  const std::string results = encode_results(settlement.results);
  AttemptLines lines;
  lines.add(settlement);
  whole_or_not(link, true, [&] {
    lines.write(link, sql_, now_or_null(), true);
    const std::array<Value, 4> params{Value(static_cast<std::int64_t>(settlement.status)), now_or_null(),
                                      bytes_or_null(results), Value(id_of(settlement))};
    link.run(sql_.move, params, {});
    const Value removed(id_of(settlement));
    link.run(sql_.remove_one, {&removed, 1}, {});
  });
  return answer;
}

void MariadbQueueStore::sequence_log() {
  for (;;) {
    bool some = false;
    work_.run([&](Link& link) {
      some = false;
      link.run(sql_.unnumbered, {}, [&](const RowView&) { some = true; });
    });
    if (!some) return;
    std::size_t given = 0;
    work_.transaction(
        [&](Link& link) {
          const Value none(0);
          link.run(sql_.take_numbers, {&none, 1}, {});  // locks
          std::int64_t last = 0;
          link.run(sql_.last_number, {}, [&](const RowView& row) { last = row.integer(0); });
          given = Settling::give_numbers(link, sql_, last).count;
        },
        {"mariadb.queue.sequence.before_commit", "mariadb.queue.sequence.after_commit"});
    if (given < numbers_at_once) return;
  }
}

}  // namespace postrider::mariadb
