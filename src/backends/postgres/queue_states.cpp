// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/queue_states.hpp"

#include <algorithm>

#include "backends/postgres/outbox_store.hpp"
#include "backends/postgres/queue_store.hpp"
#include "backends/postgres/tx_statement.hpp"

namespace postrider::postgres {

namespace {

constexpr std::string_view cannot_save = "cannot save states of handlers";

template <class Binder>
void bind_states(Binder& params, const Claim& claim, std::span<const HandlerResult> results,
                 std::optional<TimePoint> now) {
  params.int8(static_cast<std::int64_t>(claim.id)).int8(static_cast<std::int64_t>(claim.token));
  bind_results(params, last_of_each_handler(results));
  params.timestamp(now);
}

}  // namespace

std::vector<const HandlerResult*> last_of_each_handler(std::span<const HandlerResult> results) {
  std::vector<const HandlerResult*> last;
  for (const HandlerResult& result : results) {
    // A handful of handlers: looking through them is quicker than any index.
    const auto same = std::find_if(last.begin(), last.end(),
                                   [&](const HandlerResult* one) { return one->handler == result.handler; });
    if (same == last.end()) {
      last.push_back(&result);
    } else {
      *same = &result;
    }
  }
  return last;
}

std::vector<QueueStore::EventState> PostgresQueueStore::load_states(std::span<const QueueId> ids) {
  std::vector<EventState> states;
  if (ids.empty()) return states;
  Params params;
  params.begin_array(oid::int8, ids.size());
  for (const QueueId id : ids) params.element_int8(static_cast<std::int64_t>(id));
  params.end_array();
  const Result rows = run_one(sql_.load_states, params, "cannot load states of handlers");
  states.reserve(static_cast<std::size_t>(rows.rows()));
  for (int row = 0; row < rows.rows(); ++row) {
    states.push_back({.id = QueueId{rows.int8(row, 0)},
                      .result = {.handler = std::string(rows.text(row, 1)),
                                 .verdict = static_cast<HandlerVerdict>(rows.int4(row, 2)),
                                 .failed = Attempt{std::max(rows.int4(row, 3), 0)},
                                 .error = std::string(rows.text(row, 4))}});
  }
  return states;
}

bool PostgresQueueStore::save_states(const Claim& claim, std::span<const HandlerResult> results) {
  Params params;
  bind_states(params, claim, results, now());
  return run_one(sql_.save_states, params, cannot_save).rows() > 0;
}

bool PostgresQueueStore::save_states(Tx& tx, const Claim& claim, std::span<const HandlerResult> results) {
  require_postgres(tx, cannot_save);
  const std::optional<TimePoint> time = now();
  const TxRows held = run_in(tx, sql_.save_states, cannot_save,
                             [&](auto& params) { bind_states(params, claim, results, time); });
  return held.size() > 0;
}

std::vector<std::string> PostgresQueueStore::done_in(Tx& tx, QueueId id) {
  constexpr std::string_view what = "cannot read states of handlers";
  require_postgres(tx, what);
  const TxRows rows =
      run_in(tx, sql_.done_states, what, [&](auto& params) { params.int8(static_cast<std::int64_t>(id)); });
  std::vector<std::string> done;
  for (std::size_t row = 0; row < rows.size(); ++row) done.emplace_back(rows.text(row, 0));
  return done;
}

std::size_t PostgresQueueStore::clean_states(std::size_t limit) {
  Params params;
  params.int8(static_cast<std::int64_t>(limit));
  return static_cast<std::size_t>(
      run_one(sql_.clean_states, params, "cannot clean states of handlers").affected());
}

}  // namespace postrider::postgres
