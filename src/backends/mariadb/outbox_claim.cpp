// SPDX-License-Identifier: Apache-2.0
// MariadbOutboxStore::claim. Rows without a key are locked as they are found, past those that others have
// locked. Rows with a key need more care, because skipping a locked head would bring its follower: the run of
// a key is read without locks first, then exactly these rows are locked, and the run ends before the first
// that did not come or has changed.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "backends/mariadb/claim_plan.hpp"
#include "backends/mariadb/in_list.hpp"
#include "backends/mariadb/outbox_store.hpp"
#include "storage/next_token.hpp"
#include "storage/row_decoder.hpp"

namespace postrider::mariadb {
namespace {

constexpr std::size_t keys_at_once = 16;  // per statement that reads runs; a size of ListSql
constexpr std::size_t due_page = 256;
constexpr int most_pages = 16;
constexpr Micros nothing_known = -1;  // about until when a key is blocked: its rows are left alone

TimePoint time_of(Micros micros) {
  return TimePoint{Duration{micros}};
}

/// A row that this transaction has locked.
struct Locked {
  RowState state;
  ClaimedEvent claimed;  // with the token that the claim will leave
};

Locked read_locked(const RowView& row) {
  using C = ClaimColumn;
  Locked locked;
  locked.state = {.seq = row.integer(C::seq),
                  .available_at = row.integer(C::available_at),
                  .owner = std::string(row.text(C::owner))};
  if (!row.is_null(C::lease_until)) locked.state.lease_until = row.integer(C::lease_until);
  const bool json = !row.is_null(C::payload);
  locked.claimed = decode_row({.event_id = row.text(C::event_id),
                               .event_type = row.text(C::event_type),
                               .aggregate_type = row.text(C::aggregate_type),
                               .aggregate_id = row.text(C::aggregate_id),
                               .tenant_id = row.text(C::tenant_id),
                               .ordering_key = row.text(C::ordering_key),
                               .headers_json = row.text(C::headers),
                               .payload_kind = json ? PayloadKind::json : PayloadKind::bytes,
                               .payload = row.text(json ? C::payload : C::payload_bytes),
                               .occurred_at = time_of(row.integer(C::occurred_at)),
                               .created_at = time_of(row.integer(C::created_at)),
                               .attempts = row.integer(C::attempts),
                               .token = static_cast<std::int64_t>(next_token(row.integer(C::token)))});
  return locked;
}

/// A key with rows that are due, or that is to be continued.
struct Key {
  std::string name;
  bool continues = false;
  Micros due = 0;  // of the row that has been due for longest
  std::vector<Locked> run{};
  bool examined = false;     // it had pending rows when it was looked at
  Micros blocked_until = 0;  // when it is worth looking at again, if its head could not be taken
};

/// A due row of some key.
struct DueRow {
  std::int64_t seq;
  std::string key;
};

/// One claim, inside one transaction.
class Claim {
 public:
  Claim(Link& link, const OutboxSql& sql, const ClaimRequest& request, Micros now)
      : link_(link), sql_(sql), request_(request), now_(now) {}

  std::vector<ClaimedEvent> run() {
    lock_free();
    std::vector<Key> continued;
    for (const std::string& name : request_.continue_keys) {
      if (!name.empty() && blocked_until_.emplace(name, nothing_known).second) {
        continued.push_back({.name = name, .continues = true});
      }
    }
    take_keys(continued);
    // What is blocked is deferred, which brings the next page into view; a bounded number of times, so that
    // one claim does not go on for ever about a blocked backlog.
    for (int page = 0; page < most_pages && has_room(); ++page) {
      if (!take_page()) break;
    }
    take_free_until(now_);
    write_taken();
    return std::move(result_);
  }

 private:
  void lock_free() {
    const std::array<Value, 2> params{Value(now_), Value(request_.limit)};
    link_.run(sql_.lock_free, params, [&](const RowView& row) { free_.push_back(read_locked(row)); });
  }

  /// The next due rows with keys. False when there are no more, or all that are left are in somebody else's
  /// hands.
  bool take_page() {
    std::vector<DueRow> rows;
    std::vector<Key> keys;
    const std::array<Value, 2> params{Value(now_), Value(due_page)};
    link_.run(sql_.due_keys, params, [&](const RowView& row) {
      rows.push_back({row.integer(0), std::string(row.text(1))});
      if (blocked_until_.emplace(rows.back().key, nothing_known).second) {
        keys.push_back({.name = rows.back().key, .due = row.integer(2)});
      }
    });
    const std::size_t taken_before = result_.size();
    take_keys(keys);
    write_taken();
    const bool deferred_some = defer_blocked(rows);
    return rows.size() == due_page && !cut_short_ && (deferred_some || result_.size() > taken_before);
  }

  /// Takes the runs of the keys, and between them the rows without key that have been due for longer.
  void take_keys(std::vector<Key>& keys) {
    for (std::size_t i = 0; i < keys.size() && has_room(); i += keys_at_once) {
      const std::span<Key> some = std::span(keys).subspan(i, std::min(keys_at_once, keys.size() - i));
      lock_runs(some);
      for (Key& key : some) {
        if (!key.continues) take_free_until(key.due);
        std::size_t count = 0;
        for (; count < key.run.size() && has_room(); ++count) take(key.run[count]);
        if (count == request_.run_limit) {
          cut_short_ = true;  // what is behind it comes soon and is not worth being deferred
        } else if (count > 0 && has_room()) {
          blocked_until_[key.name] = deferred_until(taken_head(), now_);
        } else if (key.examined && key.run.empty()) {
          blocked_until_[key.name] = key.blocked_until;
        }
        if (!has_room()) {
          full_at_ = key.name;
          break;
        }
      }
    }
  }

  void lock_runs(std::span<Key> keys) {
    // A long run of one key must not make the others' be read in full for nothing; where it matters it is
    // read on below.
    std::size_t room = request_.limit - result_.size();
    const std::size_t at_once =
        std::min(request_.run_limit,
                 keys.size() == 1 ? room : std::min(room, std::max<std::size_t>(8, 2 * room / keys.size())));
    const std::vector<std::vector<RowState>> states =
        read_runs(keys, std::numeric_limits<std::int64_t>::min(), at_once);
    std::vector<std::int64_t> wanted;
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      lengths.push_back(run_length(states[i], now_));
      for (std::size_t n = 0; n < lengths[i]; ++n) wanted.push_back(states[i][n].seq);
    }
    std::unordered_map<std::int64_t, Locked> rows = lock(wanted);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Key& key = keys[i];
      key.examined = !states[i].empty();
      if (!states[i].empty()) key.blocked_until = deferred_until(states[i].front(), now_);
      extend(key, std::span(states[i]).first(lengths[i]), rows);
    }
    for (Key& key : keys) {
      room -= std::min(room, key.run.size());
      const std::size_t more = std::min(room, request_.run_limit - key.run.size());
      if (more > 0 && key.run.size() == at_once) lock_rest(key, more);
    }
  }

  /// Goes on with a run that was longer than what was read of it.
  void lock_rest(Key& key, std::size_t room) {
    const std::int64_t last = key.run.back().state.seq;
    if (last == std::numeric_limits<std::int64_t>::max()) return;
    const std::vector<RowState> states = read_runs({&key, 1}, last + 1, room).front();
    const auto end = std::find_if(states.begin(), states.end(),
                                  [&](const RowState& row) { return !claimable(row, now_); });
    std::vector<std::int64_t> wanted;
    for (auto row = states.begin(); row != end; ++row) wanted.push_back(row->seq);
    std::unordered_map<std::int64_t, Locked> rows = lock(wanted);
    extend(key, {states.begin(), end}, rows);
  }

  /// The pending rows of each key from this seq on, in order of seq, as they are committed now.
  std::vector<std::vector<RowState>> read_runs(std::span<const Key> keys, std::int64_t from,
                                               std::size_t limit) {
    const ListSql::Sized sized = sql_.key_runs.for_count(keys.size());
    std::vector<Value> params;
    std::unordered_map<std::string_view, std::size_t> at;
    for (std::size_t i = 0; i < sized.places; ++i) {
      const bool used = i < keys.size();
      if (used) at.emplace(keys[i].name, i);
      params.insert(params.end(), {used ? Value(keys[i].name) : Value(nullptr), Value(from), Value(limit)});
    }
    std::vector<std::vector<RowState>> runs(keys.size());
    link_.run(sized.sql, params, [&](const RowView& row) {
      RowState state{
          .seq = row.integer(1), .available_at = row.integer(2), .owner = std::string(row.text(4))};
      if (!row.is_null(3)) state.lease_until = row.integer(3);
      runs[at.at(row.text(0))].push_back(std::move(state));
    });
    return runs;
  }

  std::unordered_map<std::int64_t, Locked> lock(const std::vector<std::int64_t>& seqs) {
    std::unordered_map<std::int64_t, Locked> rows;
    run_list(link_, sql_.lock_rows, {}, seqs, {}, [&](const RowView& row) {
      Locked locked = read_locked(row);
      rows.emplace(locked.state.seq, std::move(locked));
    });
    return rows;
  }

  /// Adds the planned rows to the run, up to the first that somebody else has locked or changed meanwhile.
  void extend(Key& key, std::span<const RowState> planned, std::unordered_map<std::int64_t, Locked>& rows) {
    for (const RowState& state : planned) {
      const auto found = rows.find(state.seq);
      if (found == rows.end()) return;
      const RowState& fresh = found->second.state;
      if (!claimable(fresh, now_) || found->second.claimed.ordering_key != key.name) return;
      key.run.push_back(std::move(found->second));
    }
  }

  void take_free_until(Micros due) {
    while (next_free_ < free_.size() && due_time(free_[next_free_].state) <= due && has_room())
      take(free_[next_free_++]);
  }

  /// The head of a run that this claim takes, as the rest of its key will see it.
  [[nodiscard]] RowState taken_head() const {
    return {.lease_until = now_ + bounded(request_.lease), .owner = std::string(request_.owner)};
  }

  [[nodiscard]] bool has_room() const { return result_.size() < request_.limit; }

  void take(Locked& row) {
    taken_.insert(row.state.seq);
    unwritten_.push_back(row.state.seq);
    result_.push_back(std::move(row.claimed));
  }

  void write_taken() {
    const std::array<Value, 2> before{Value(request_.owner), Value(now_ + bounded(request_.lease))};
    run_list(link_, sql_.take, before, unwritten_, {}, {});
    unwritten_.clear();
  }

  /// What is due of a key but was not taken waits for the key's head. False when there was nothing to defer.
  bool defer_blocked(const std::vector<DueRow>& rows) {
    std::unordered_map<std::int64_t, Micros> until;
    std::vector<std::int64_t> seqs;
    for (const DueRow& row : rows) {
      if (row.key == full_at_) break;  // from here on nobody has looked
      const Micros blocked_until = blocked_until_.at(row.key);
      if (taken_.contains(row.seq) || blocked_until == nothing_known) continue;
      seqs.push_back(row.seq);
      until.emplace(row.seq, blocked_until);
    }
    std::vector<Value> values;
    const Value now(now_);
    run_list(link_, sql_.lock_due, {}, seqs, {&now, 1}, [&](const RowView& row) {
      const std::int64_t seq = row.integer(0);
      values.insert(values.end(), {Value(until.at(seq)), Value(seq)});
    });
    link_.run_many(sql_.defer, 2, values);
    return !values.empty();
  }

  Link& link_;
  const OutboxSql& sql_;
  const ClaimRequest& request_;
  const Micros now_;
  std::vector<Locked> free_;  // by due time
  std::size_t next_free_ = 0;
  std::unordered_map<std::string, Micros> blocked_until_;  // every key seen so far
  std::optional<std::string> full_at_;                     // the key at which the limit was reached
  bool cut_short_ = false;                                 // some run was longer than allowed
  std::unordered_set<std::int64_t> taken_;
  std::vector<std::int64_t> unwritten_;  // taken, but not yet in the table
  std::vector<ClaimedEvent> result_;
};

}  // namespace

std::vector<ClaimedEvent> MariadbOutboxStore::claim(const ClaimRequest& request) {
  std::vector<ClaimedEvent> claimed;
  if (request.limit == 0) return claimed;
  work_.transaction(
      [&](Link& link) {
        Micros now = 0;
        if (clock_ != nullptr) {
          now = clock_->now().time_since_epoch().count();
        } else {
          link.run(sql_.now, {}, [&](const RowView& row) { now = row.integer(0); });
        }
        claimed = Claim(link, sql_, request, now).run();
      },
      {"mariadb.claim.before_commit", "mariadb.claim.after_commit"});
  return claimed;
}

}  // namespace postrider::mariadb
