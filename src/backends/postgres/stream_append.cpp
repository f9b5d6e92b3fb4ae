// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <utility>

#include "backends/postgres/bind_events.hpp"
#include "backends/postgres/contention.hpp"
#include "backends/postgres/outbox_store.hpp"
#include "backends/postgres/stream_store.hpp"
#include "backends/postgres/tx_statement.hpp"
#include "core/failpoint.hpp"
#include "postrider/error.hpp"

namespace postrider::postgres {
namespace {

constexpr std::string_view cannot_append = "cannot append to the event store";
constexpr int append_attempts = 5;
constexpr std::size_t most_hashes = 100'000;  // in one statement

/// The probes of one round, by the statement that answers them.
struct Probes {
  explicit Probes(const std::vector<StreamProbe>& all) : all_(all) {
    for (std::size_t i = 0; i < all.size(); ++i) (all[i].hashes->size() == 1 ? single : groups).push_back(i);
  }

  template <class Binder>
  void bind_single(Binder& params) const {
    bind(params, oid::int8, single,
         [](Binder& p, const StreamProbe& probe) { p.element_int8(probe.hashes->front()); });
    bind_range(params, single);
  }
  template <class Binder>
  void bind_groups(Binder& params) const {
    std::int32_t at = 1;
    bind(params, oid::int4, groups, [&](Binder& p, const StreamProbe& probe) {
      p.element_int4(at);
      at += static_cast<std::int32_t>(probe.hashes->size());
    });
    const auto total = static_cast<std::size_t>(at - 1);
    at = 0;
    bind(params, oid::int4, groups, [&](Binder& p, const StreamProbe& probe) {
      at += static_cast<std::int32_t>(probe.hashes->size());
      p.element_int4(at);
    });
    bind_range(params, groups);
    params.begin_array(oid::int8, total);
    for (const std::size_t i : groups) {
      for (const std::int64_t hash : *all_[i].hashes) params.element_int8(hash);
    }
    params.end_array();
  }

  std::vector<std::size_t> single{};
  std::vector<std::size_t> groups{};

 private:
  template <class Binder, class Add>
  void bind(Binder& params, Oid type, const std::vector<std::size_t>& places, const Add& add) const {
    params.begin_array(type, places.size());
    for (const std::size_t i : places) add(params, all_[i]);
    params.end_array();
  }
  template <class Binder>
  void bind_range(Binder& params, const std::vector<std::size_t>& places) const {
    bind(params, oid::int8, places, [](Binder& p, const StreamProbe& probe) { p.element_int8(probe.after); });
    bind(params, oid::int8, places, [](Binder& p, const StreamProbe& probe) { p.element_int8(probe.until); });
  }

  const std::vector<StreamProbe>& all_;
};

void tell(StreamFlush& flush, const TxRows& rows, const std::vector<std::size_t>& places) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    flush.found(places.at(static_cast<std::size_t>(rows.int8(row, 0) - 1)), rows.int8(row, 1),
                rows.text(row, 2), rows.text(row, 3));
  }
}

StreamHead head_of(const TxRows& rows) {
  if (rows.size() == 0) return {};
  return {.position = rows.int8(0, 0), .type = std::string(rows.text(0, 1))};
}

template <class Binder>
void bind_rows(Binder& params, std::span<const NewStreamRow> rows, std::optional<TimePoint> now) {
  using Row = NewStreamRow;
  const auto texts = [&](Oid type, const auto& get) { bind_texts(params, type, rows, get); };
  params.begin_array(oid::int8, rows.size());
  for (const Row& row : rows) params.element_int8(row.position);
  params.end_array();
  texts(oid::text, [](const Row& r) { return r.event->id().view(); });
  texts(oid::text, [](const Row& r) { return std::string_view(r.event->type()); });
  texts(oid::text, [](const Row& r) { return std::string_view(r.tags); });
  texts(oid::json, [](const Row& r) { return json_payload(*r.event); });
  bind_bytes(params, rows);
  texts(oid::json, [](const Row& r) { return r.event->headers_json(); });
  texts(oid::text, [](const Row& r) { return std::string_view(r.append->correlation_id()); });
  texts(oid::text, [](const Row& r) { return std::string_view(r.append->causation_id()); });
  params.begin_array(oid::timestamptz, rows.size());
  for (const Row& row : rows) params.element_timestamp(row.event->occurred_at());
  params.end_array();
  params.begin_array(oid::int4, rows.size());
  for (const Row& row : rows) params.element_int4(row.size());
  params.end_array();
  params.timestamp(now);
}

std::size_t hashes_of(std::span<const NewStreamRow> rows) {
  std::size_t total = 0;
  for (const NewStreamRow& row : rows) total += row.hashes.size();
  return total;
}

template <class Binder>
void bind_tags(Binder& params, std::span<const NewStreamRow> rows) {
  const std::size_t total = hashes_of(rows);
  params.begin_array(oid::int8, total);
  for (const NewStreamRow& row : rows) {
    for (const std::int64_t hash : row.hashes) params.element_int8(hash);
  }
  params.end_array();
  params.begin_array(oid::int8, total);
  for (const NewStreamRow& row : rows) {
    for (std::size_t i = 0; i < row.hashes.size(); ++i) params.element_int8(row.position);
  }
  params.end_array();
}

/// How many of the rows go into one statement, for both tables.
std::size_t piece_of(std::span<const NewStreamRow> rows) {
  const std::size_t most = batch_end(rows, 0);
  std::size_t hashes = 0;
  std::size_t count = 0;
  while (count < most && hashes < most_hashes) hashes += rows[count++].hashes.size();
  return count;
}

}  // namespace

PostgresStreamStore::PostgresStreamStore(const Identifier& schema, Clock* clock, Duration lock_timeout,
                                         StreamKeys keys, WithConnection with_connection,
                                         std::function<void()> check_schema)
    : sql_(schema, lock_timeout),
      clock_(clock),
      keys_(keys),
      with_connection_(std::move(with_connection)),
      check_schema_(std::move(check_schema)) {}

std::optional<TimePoint> PostgresStreamStore::now() const {
  return clock_ == nullptr ? std::nullopt : std::optional(clock_->now());
}

std::vector<AppendVerdict> PostgresStreamStore::append(std::span<const AppendRequest> requests) {
  return flush_or_part(requests, [&](std::span<const AppendRequest> part) {
    return again_after_contention(append_attempts, [&] {
      try {
        return flush(part);
      } catch (const Error& error) {
        const bool waited_in_vain = error.sqlstate() == "55P03";
        if (!waited_in_vain) throw;
        throw append_timeout();
      }
    });
  });
}

std::vector<AppendVerdict> PostgresStreamStore::flush(std::span<const AppendRequest> requests) {
  StreamFlush flush(requests, keys_);
  with_connection_([&](Connection& connection) {
    const RollbackGuard guard(connection);
    StreamHead head;
    bool first = true;
    do {
      const Probes probes(flush.probes());
      thread_local Params params;
      Pipeline pipeline(connection, cannot_append);
      std::size_t next = 0;
      if (first) {
        pipeline.send(begin_worker_statement);
        pipeline.send(sql_.lock);
        pipeline.send(sql_.head);
        next = 3;
      }
      if (!probes.single.empty()) {
        params.clear();
        probes.bind_single(params);
        pipeline.send(sql_.probe_one, params);
      }
      if (!probes.groups.empty()) {
        params.clear();
        probes.bind_groups(params);
        pipeline.send(sql_.probe_groups, params);
      }
      std::vector<Result> results = pipeline.finish();
      if (first) head = head_of(TxRows(std::move(results.at(2))));
      if (!probes.single.empty()) tell(flush, TxRows(std::move(results.at(next++))), probes.single);
      if (!probes.groups.empty()) tell(flush, TxRows(std::move(results.at(next))), probes.groups);
      first = false;
    } while (flush.next_round());
    flush.decide(head);
    if (!flush.rows().empty()) write(connection, flush.rows());
  });
  return std::move(flush).verdicts();
}

void PostgresStreamStore::write(Connection& connection, std::span<const NewStreamRow> rows) const {
  const std::optional<TimePoint> time = now();
  thread_local Params params;
  while (!rows.empty()) {
    const std::span<const NewStreamRow> piece = rows.first(piece_of(rows));
    rows = rows.subspan(piece.size());
    Pipeline pipeline(connection, cannot_append);
    params.clear();
    bind_rows(params, piece, time);
    pipeline.send(sql_.insert_events, params);
    params.clear();
    bind_tags(params, piece);
    pipeline.send(sql_.insert_tags, params);
    if (rows.empty()) {
      failpoint("postgres.stream.before_commit");
      pipeline.send_commit(false);
    }
    (void)pipeline.finish();
  }
  failpoint("postgres.stream.after_commit");
}

AppendVerdict PostgresStreamStore::append(Tx& tx, const AppendRequest& request) {
  require_postgres(tx, cannot_append);
  const TxRows locked = run_in(tx, sql_.lock_if_read_committed, cannot_append, [](auto& /*params*/) {});
  const std::string_view level = locked.text(0, 0);
  if (!level.starts_with("read ")) {
    throw Error(ErrorCode::unsupported, cannot_append,
                "the transaction is at isolation level " + std::string(level) +
                    ", where a condition would be checked against an old snapshot",
                "begin it at READ COMMITTED");
  }
  StreamFlush flush({&request, 1}, keys_);
  const auto none = [](auto& /*params*/) {};
  do {
    const Probes probes(flush.probes());
    if (!probes.single.empty()) {
      tell(flush,
           run_in(tx, sql_.probe_one, cannot_append, [&](auto& params) { probes.bind_single(params); }),
           probes.single);
    }
    if (!probes.groups.empty()) {
      tell(flush,
           run_in(tx, sql_.probe_groups, cannot_append, [&](auto& params) { probes.bind_groups(params); }),
           probes.groups);
    }
  } while (flush.next_round());
  flush.decide(head_of(run_in(tx, sql_.head, cannot_append, none)));
  const std::optional<TimePoint> time = now();
  for (std::span<const NewStreamRow> rows = flush.rows(); !rows.empty();) {
    const std::span<const NewStreamRow> piece = rows.first(piece_of(rows));
    rows = rows.subspan(piece.size());
    (void)run_in(tx, sql_.insert_events, cannot_append,
                 [&](auto& params) { bind_rows(params, piece, time); });
    (void)run_in(tx, sql_.insert_tags, cannot_append, [&](auto& params) { bind_tags(params, piece); });
  }
  AppendVerdict verdict = std::move(flush).verdicts().front();
  if (const auto* refused = std::get_if<std::exception_ptr>(&verdict)) std::rethrow_exception(*refused);
  return verdict;
}

}  // namespace postrider::postgres
