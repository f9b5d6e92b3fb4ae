// SPDX-License-Identifier: Apache-2.0
// Random histories: every verb with random arguments, also stale ones, and the clock moving between. After
// each step the tables must be what the model says. A failure prints the smallest history found and its seed
// (RC_PARAMS repeats it).
#include <rapidcheck.h>

#include <array>
#include <iostream>
#include <set>

#include "storage/conformance/queue_fixture.hpp"
#include "storage/conformance/queue_model.hpp"

namespace postrider::conformance {
namespace {

/// One step: numbers that the verb makes of what it needs, so that any shrinking gives a valid history.
struct QueueStep {
  int verb;
  unsigned a;
  unsigned b;
};

std::ostream& operator<<(std::ostream& out, const QueueStep& step) {
  constexpr std::array names{"publish", "rollback", "claim",       "settle",      "settle_in_tx",
                             "renew",   "advance",  "save_states", "clean_states"};
  return out << names.at(static_cast<std::size_t>(step.verb)) << "(" << step.a << ", " << step.b << ")";
}

// Claims and settlements more often than the rest.
rc::Gen<QueueStep> any_queue_step() {
  return rc::gen::build<QueueStep>(
      rc::gen::set(&QueueStep::verb,
                   rc::gen::weightedElement<int>(
                       {{6, 0}, {1, 1}, {7, 2}, {6, 3}, {2, 4}, {1, 5}, {4, 6}, {1, 7}, {1, 8}})),
      rc::gen::set(&QueueStep::a, rc::gen::inRange(0U, 1000U)),
      rc::gen::set(&QueueStep::b, rc::gen::inRange(0U, 1000U)));
}

class QueueHistory : public QueueConformance {
 protected:
  void run(const QueueStep& step) {
    switch (step.verb) {
      case 0:
        return publish_some(step, true);
      case 1:
        return publish_some(step, false);
      case 2:
        return claim_some(step);
      case 3:
        return settle_some(step);
      case 4:
        return settle_in_tx(step);
      case 5:
        return renew_some(step);
      case 6:
        // Mostly short, sometimes past every lease.
        return clock_.advance(step.a % 5 == 0 ? Duration(40s) : Duration(std::chrono::milliseconds(step.b)));
      case 7:
        return save_some_states(step);
      default:
        // Which ones go first is free: so all of them.
        RC_ASSERT(store().clean_states(10'000) == model_.clean_states());
    }
  }

  void compare() {
    RC_ASSERT(queue_rows() == model_.rows);
    RC_ASSERT(log_rows() == model_.log);
    std::vector<StateRow> states;
    for (const auto& [place, result] : model_.states) states.push_back({place.first, result});
    RC_ASSERT(state_rows() == states);
    std::set<QueueId> ids;
    for (const auto& [place, result] : model_.states) ids.insert(QueueId{place.first});
    RC_ASSERT(store().load_states(std::vector<QueueId>(ids.begin(), ids.end())).size() == states.size());
  }

  void reset() {
    for (const char* name : {"event_queue", "event_log", "event_handler_state"}) {
      sql("delete from " + table(name));
    }
    model_ = {};
    known_.clear();
  }

 private:
  void publish_some(const QueueStep& step, bool commit) {
    const unsigned count = 1 + step.a % 4;
    std::vector<Event> events;
    std::vector<QueueRow> expected;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned luck = step.b + i * (step.a + 1);
      const std::string type = "T" + std::to_string(luck % 3);
      EventBuilder builder = Event::builder(EventType(type));
      builder.id(EventId("e" + std::to_string(++last_event_))).json("1");
      if (luck % 7 == 0) builder.deliver_at(clock_.now() + std::chrono::seconds(luck % 20) - 5s);
      events.push_back(builder.build());
      expected.push_back({.event_id = events[i].id().str(),
                          .type = type,
                          .key = luck % 4 < 2 ? "" : "k" + std::to_string(luck % 3),
                          .dedupe = luck % 5 == 0 ? "d" + std::to_string(luck % 3) : "",
                          .priority = luck % 3 == 0 ? static_cast<int>(luck % 10) : 0,
                          .available = events[i].deliver_at().value_or(clock_.now()),
                          .created = clock_.now()});
    }
    std::vector<NewQueueRow> rows;
    for (unsigned i = 0; i < count; ++i) {
      rows.push_back({.event = &events[i],
                      .priority = expected[i].priority,
                      .ordering_key = expected[i].key,
                      .dedupe_key = expected[i].dedupe});
    }
    Transaction tx = storage().begin();
    const std::vector<InsertedRow> answers = store().insert(tx, rows);
    if (!commit) return tx.rollback();
    tx.commit();
    RC_ASSERT(answers.size() == rows.size());
    for (unsigned i = 0; i < count; ++i) {
      RC_ASSERT(model_.insert(expected[i], answers[i]) == "");
      known_.push_back({answers[i].id, Token{0}});  // a claim that nobody was given
    }
  }

  void claim_some(const QueueStep& step) {
    const std::string owner = "n" + std::to_string(step.a % 3);
    std::vector<std::string> unwanted;
    if (step.b % 5 == 0) unwanted.push_back("T" + std::to_string(step.a % 3));
    if (step.b % 10 == 0) unwanted.emplace_back("T2");
    const QueueClaimRequest request{.owner = owner,
                                    .lease = std::chrono::seconds(1 + step.a % 30),
                                    .limit = 1 + step.b % 6,
                                    .suspect_limit = step.b % 4 == 0 ? step.a % 4 : 100,
                                    .suspect_crashes = static_cast<std::int32_t>(1 + step.b % 2),
                                    .max_crashes = static_cast<std::int32_t>(step.a % 4),
                                    .run_limit = 1 + step.a % 3,
                                    .without_types = unwanted};
    const QueueClaimResult result = store().claim(request);
    RC_ASSERT(model_.check_claim(request, clock_.now(), result) == "");
    for (const QueuedEvent& one : result.events) known_.push_back(one.claim);
  }

  /// Any claim ever given, mostly a recent one.
  [[nodiscard]] Claim some_claim(unsigned number) const {
    if (known_.empty() || number % 50 == 49) return {QueueId{1'000'000'000}, Token{1}};
    const std::size_t back = number % 10 == 0 ? number : number % 6;
    return known_[known_.size() - 1 - back % known_.size()];
  }
  static std::vector<HandlerResult> some_results(unsigned number) {
    std::vector<HandlerResult> results;
    for (unsigned i = 0; i < number % 3; ++i) {
      const auto verdict = static_cast<HandlerVerdict>((number + i) % 3);
      results.push_back({.handler = "h" + std::to_string(i),
                         .verdict = verdict,
                         .failed = Attempt{static_cast<std::int32_t>(number % 5)},
                         .error = verdict == HandlerVerdict::success ? "" : "e" + std::to_string(number)});
    }
    return results;
  }
  static Settlement some_settlement(const Claim& claim, unsigned a, unsigned b) {
    return {.claim = claim,
            .kind = static_cast<Settlement::Kind>(a % 3),
            .status = static_cast<QueueStatus>(2 + b % 3),
            .results = some_results(b),
            .delay = std::chrono::milliseconds(a * 10),
            .error = "error " + std::to_string(b)};
  }

  void settle_some(const QueueStep& step) {
    std::vector<Settlement> batch;
    std::vector<Settled> expected;
    std::set<QueueId> ids;
    for (unsigned i = 0; i < 1 + step.a % 4; ++i) {
      const Claim claim = some_claim(step.b + i * 7);
      if (!ids.insert(claim.id).second) continue;  // nobody settles a row twice in a batch
      batch.push_back(some_settlement(claim, step.a + i, step.b));
      expected.push_back(model_.settle(batch.back(), clock_.now()));
    }
    RC_ASSERT(store().settle(batch) == expected);
    RC_ASSERT(model_.adopt_numbers(log_rows()) == "");
  }

  void settle_in_tx(const QueueStep& step) {
    Settlement one = some_settlement(some_claim(step.a), step.b, step.b);
    one.kind = Settlement::Kind::finalize;
    const bool commit = step.b % 3 != 0;
    QueueModel after = model_;
    const Settled expected = after.settle(one, clock_.now());
    {
      Transaction tx = storage().begin();
      RC_ASSERT(store().settle(tx, one) == expected);
      if (commit) tx.commit();
    }
    if (!commit) return;
    model_ = std::move(after);
    store().sequence_log();
    RC_ASSERT(model_.adopt_numbers(log_rows()) == "");
  }

  void renew_some(const QueueStep& step) {
    const std::vector<Claim> asked{some_claim(step.a), some_claim(step.b + 1)};
    const Duration lease = std::chrono::seconds(1 + step.b % 30);
    std::set<QueueId> expected;
    for (const Claim& one : asked) {
      if (model_.renew(one, clock_.now() + lease)) expected.insert(one.id);
    }
    const std::vector<QueueId> renewed = store().renew(asked, lease);
    RC_ASSERT(std::set<QueueId>(renewed.begin(), renewed.end()) == expected);
  }

  void save_some_states(const QueueStep& step) {
    const Claim claim = some_claim(step.a);
    const std::vector<HandlerResult> results = some_results(step.b);
    RC_ASSERT(store().save_states(claim, results) == model_.save_states(claim, results));
  }

  QueueModel model_;
  std::vector<Claim> known_;
  std::uint64_t last_event_ = 0;
};
POSTRIDER_FOR_EACH_BACKEND(QueueHistory);

TEST_P(QueueHistory, TheTablesAreWhatTheModelSays) {
  const bool held = rc::check("any history of verbs", [this] {
    reset();
    // A server writes to the disk after each step: shorter ones there, or it would take minutes.
    const double length = storage().kind() == BackendKind::sqlite ? 3.0 : 0.7;
    const auto history =
        *rc::gen::scale(length, rc::gen::container<std::vector<QueueStep>>(any_queue_step()));
    for (const QueueStep& step : history) {
      // Said at once, too: what comes from outside (a lost connection) is gone when RapidCheck repeats the
      // history to make it smaller.
      try {
        run(step);
        compare();
      } catch (const Error& error) {
        std::cerr << step << ": " << error.what() << "\n";
        throw;
      }
    }
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace postrider::conformance
