// SPDX-License-Identifier: Apache-2.0
// What the queue conformance tests share: short ways to say things, and to look into the tables.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "storage/conformance/queue_rows.hpp"
#include "storage/conformance/store_fixture.hpp"
#include "storage/handler_results.hpp"
#include "storage/queue_store.hpp"

namespace postrider::conformance {

/// How `publish` makes a row; the default is free at once, without a key.
struct Job {
  int priority = 0;
  std::string key{};
  std::string dedupe{};
  std::optional<Duration> deliver_in{};
  std::string type = "Happened";
};

/// How `claim` asks; the default takes everything that there is.
struct Ask {
  std::string owner = "n1";
  std::size_t limit = 100;
  std::size_t suspects = 100;
  std::int32_t suspect_crashes = 1;
  std::int32_t max_crashes = 3;
  std::size_t run = 1;
  Duration lease = 30s;
  std::vector<std::string> without{};
};

/// What the handlers of an event may have said.
inline const std::vector<HandlerResult> three_results{
    {.handler = "mail"},
    {.handler = "bill", .verdict = HandlerVerdict::transient_error, .failed = Attempt{5}, .error = "busy"},
    {.handler = "shïp", .verdict = HandlerVerdict::unrecoverable_error, .error = "no such \"land\" 🏝\n"}};

class QueueConformance : public StoreConformance {
 protected:
  [[nodiscard]] QueueStore& store() { return storage().queue_store(); }
  [[nodiscard]] std::string queue() const { return table("event_queue"); }
  [[nodiscard]] std::string log() const { return table("event_log"); }

  InsertedRow insert(Tx& tx, const Event& event, const Job& job = {}) {
    const NewQueueRow row{
        .event = &event, .priority = job.priority, .ordering_key = job.key, .dedupe_key = job.dedupe};
    const std::vector<InsertedRow> inserted = store().insert(tx, {&row, 1});
    EXPECT_EQ(inserted.size(), 1U);
    return inserted.empty() ? InsertedRow{} : inserted.front();
  }
  [[nodiscard]] Event event_of(const std::string& name, const Job& job = {}) {
    EventBuilder builder = Event::builder(EventType(job.type));
    builder.id(EventId(name)).json("{}");
    if (job.deliver_in.has_value()) builder.deliver_at(clock_.now() + *job.deliver_in);
    return builder.build();
  }
  /// Commits one event with this name as its event id.
  InsertedRow publish(const std::string& name, const Job& job = {}) {
    Transaction tx = storage().begin();
    const InsertedRow inserted = insert(tx, event_of(name, job), job);
    tx.commit();
    return inserted;
  }
  void publish_all(const std::vector<std::string>& names, const Job& job = {}) {
    for (const std::string& name : names) publish(name, job);
  }

  QueueClaimResult claim_result(const Ask& ask = {}) {
    QueueClaimResult result = store().claim(request(ask));
    for (const QueuedEvent& one : result.events) {
      if (one.event.has_value()) held_[one.event->id().str()] = one.claim;
    }
    return result;
  }
  std::vector<QueuedEvent> claim_events(const Ask& ask = {}) { return claim_result(ask).events; }
  /// The names in the order of the claim; the claims are remembered in `held`.
  std::vector<std::string> claim(const Ask& ask = {}) { return names_of(claim_events(ask)); }
  [[nodiscard]] static std::vector<std::string> names_of(const std::vector<QueuedEvent>& events) {
    std::vector<std::string> names;
    for (const QueuedEvent& one : events) {
      names.push_back(one.event.has_value() ? one.event->id().str() : one.decode_error);
    }
    return names;
  }
  [[nodiscard]] static QueueClaimRequest request(const Ask& ask) {
    return {.owner = ask.owner,
            .lease = ask.lease,
            .limit = ask.limit,
            .suspect_limit = ask.suspects,
            .suspect_crashes = ask.suspect_crashes,
            .max_crashes = ask.max_crashes,
            .run_limit = ask.run,
            .without_types = ask.without};
  }
  /// The last claim of this event.
  [[nodiscard]] Claim held(const std::string& name) const { return held_.at(name); }

  Settled settle(const Settlement& one) {
    const std::vector<Settled> answers = store().settle({&one, 1});
    EXPECT_EQ(answers.size(), 1U);
    return answers.empty() ? Settled::unknown : answers.front();
  }
  Settled finalize(const Claim& claim, QueueStatus status = QueueStatus::completed,
                   std::vector<HandlerResult> results = {}) {
    return settle({.claim = claim,
                   .kind = Settlement::Kind::finalize,
                   .status = status,
                   .results = std::move(results)});
  }
  Settled finalize(const std::string& name) { return finalize(held(name)); }
  Settled retry(const Claim& claim, Duration delay, std::vector<HandlerResult> results = {},
                std::string error = "no luck") {
    return settle({.claim = claim,
                   .kind = Settlement::Kind::retry,
                   .results = std::move(results),
                   .delay = delay,
                   .error = std::move(error)});
  }
  Settled retry(const std::string& name, Duration delay) { return retry(held(name), delay); }
  Settled release(const Claim& claim) { return settle({.claim = claim, .kind = Settlement::Kind::release}); }
  Settled release(const std::string& name) { return release(held(name)); }

  /// All rows of the queue, in order of id.
  std::vector<QueueRow> queue_rows() {
    const Rows rows =
        sql("select id, event_id, coalesce(ordering_key, ''), coalesce(dedupe_key, ''), priority, status, "
            "attempts, crashes, token, " +
            micros_sql("available_at") + ", " + micros_sql("created_at") + ", " +
            micros_sql("processing_started_at") + ", coalesce(owner, ''), " + micros_sql("lease_until") +
            ", coalesce(last_error, ''), " + micros_sql("quarantined_at") + ", event_type from " + queue() +
            " order by id");
    std::vector<QueueRow> found;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      found.push_back({.id = rows.integer(i, 0),
                       .event_id = rows.text(i, 1),
                       .type = rows.text(i, 16),
                       .key = rows.text(i, 2),
                       .dedupe = rows.text(i, 3),
                       .priority = static_cast<int>(rows.integer(i, 4)),
                       .status = static_cast<QueueStatus>(rows.integer(i, 5)),
                       .attempts = rows.integer(i, 6),
                       .crashes = rows.integer(i, 7),
                       .token = rows.integer(i, 8),
                       .available = time(rows, i, 9).value(),
                       .created = time(rows, i, 10).value(),
                       .started = time(rows, i, 11),
                       .owner = rows.text(i, 12),
                       .lease_until = time(rows, i, 13),
                       .error = rows.text(i, 14),
                       .quarantined = time(rows, i, 15)});
    }
    return found;
  }
  [[nodiscard]] QueueRow row(const std::string& name) {
    for (QueueRow& one : queue_rows()) {
      if (one.event_id == name) return std::move(one);
    }
    ADD_FAILURE() << "not in the queue: " << name;
    return {};
  }
  /// When the row of this event was last written.
  [[nodiscard]] TimePoint updated_at(const std::string& name) {
    return time(sql("select " + micros_sql("updated_at") + " from " + queue() + " where event_id = ?", name),
                0, 0)
        .value();
  }

  /// All rows of the log: in order of seq, those without one at the beginning.
  std::vector<LogRow> log_rows() {
    const Rows rows =
        sql("select coalesce(seq, 0), id, token, event_id, coalesce(ordering_key, ''), priority, status, "
            "attempts, crashes, " +
            micros_sql("created_at") + ", " + micros_sql("processing_started_at") + ", " +
            micros_sql("finalized_at") + ", coalesce(" +
            (storage().kind() == BackendKind::postgres ? "results::text" : "results") + ", '') from " +
            log() + " order by 1, id");
    std::vector<LogRow> found;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      found.push_back({.seq = rows.integer(i, 0),
                       .id = rows.integer(i, 1),
                       .token = rows.integer(i, 2),
                       .event_id = rows.text(i, 3),
                       .key = rows.text(i, 4),
                       .priority = static_cast<int>(rows.integer(i, 5)),
                       .status = static_cast<QueueStatus>(rows.integer(i, 6)),
                       .attempts = rows.integer(i, 7),
                       .crashes = rows.integer(i, 8),
                       .created = time(rows, i, 9).value(),
                       .started = time(rows, i, 10),
                       .finalized = time(rows, i, 11).value(),
                       .results = decode_results(rows.text(i, 12))});
    }
    return found;
  }
  /// What must not have changed after something that was refused.
  auto all_rows() { return std::tuple(queue_rows(), log_rows(), state_rows()); }
  /// The names in the log, by number.
  std::vector<std::string> logged() {
    std::vector<std::string> names;
    for (const LogRow& one : log_rows()) names.push_back(one.event_id);
    return names;
  }
  [[nodiscard]] LogRow logged(const std::string& name) {
    for (LogRow& one : log_rows()) {
      if (one.event_id == name) return std::move(one);
    }
    ADD_FAILURE() << "not in the log: " << name;
    return {};
  }

  /// Stored handler states of all events, in order.
  std::vector<StateRow> state_rows() {
    const Rows rows = sql("select id, handler, result, failed, coalesce(error, '') from " +
                          table("event_handler_state") + " order by id, handler");
    std::vector<StateRow> found;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      found.push_back({.id = rows.integer(i, 0),
                       .result = {.handler = rows.text(i, 1),
                                  .verdict = static_cast<HandlerVerdict>(rows.integer(i, 2)),
                                  .failed = Attempt{static_cast<std::int32_t>(rows.integer(i, 3))},
                                  .error = rows.text(i, 4)}});
    }
    return found;
  }

 private:
  [[nodiscard]] static std::optional<TimePoint> time(const Rows& rows, std::size_t row, std::size_t column) {
    if (rows.is_null(row, column)) return std::nullopt;
    return TimePoint(Duration(rows.integer(row, column)));
  }

  std::map<std::string, Claim> held_;
};

}  // namespace postrider::conformance
