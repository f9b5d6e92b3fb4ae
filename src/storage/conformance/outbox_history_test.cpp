// SPDX-License-Identifier: Apache-2.0
// Random histories: every verb with random arguments, also stale ones, and the clock moving between. After
// each step the table must be what the model says. A failure prints the smallest history found and its seed
// (RC_PARAMS repeats it).
#include <rapidcheck.h>

#include <array>
#include <iostream>
#include <set>

#include "storage/conformance/outbox_fixture.hpp"
#include "storage/conformance/outbox_model.hpp"

namespace postrider::conformance {
namespace {

/// One step: numbers that the verb makes of what it needs, so that any shrinking gives a valid history.
struct OutboxStep {
  int verb;
  unsigned a;
  unsigned b;
};

std::ostream& operator<<(std::ostream& out, const OutboxStep& step) {
  constexpr std::array names{"publish", "claim",  "complete", "renew",
                             "advance", "revive", "purge",    "rollback"};
  return out << names.at(static_cast<std::size_t>(step.verb)) << "(" << step.a << ", " << step.b << ")";
}

// Claims and completions more often than the rest.
rc::Gen<OutboxStep> any_outbox_step() {
  return rc::gen::build<OutboxStep>(
      rc::gen::set(&OutboxStep::verb, rc::gen::weightedElement<int>(
                                          {{6, 0}, {6, 1}, {6, 2}, {1, 3}, {4, 4}, {1, 5}, {1, 6}, {1, 7}})),
      rc::gen::set(&OutboxStep::a, rc::gen::inRange(0U, 1000U)),
      rc::gen::set(&OutboxStep::b, rc::gen::inRange(0U, 1000U)));
}

class OutboxHistory : public OutboxConformance {
 protected:
  void run(const OutboxStep& step) {
    switch (step.verb) {
      case 0:
        return publish_some(step, true);
      case 1:
        return claim_some(step);
      case 2:
        return complete_some(step);
      case 3:
        return renew_some(step);
      case 4:
        // Mostly short, sometimes past every lease.
        return clock_.advance(step.a % 5 == 0 ? Duration(40s) : Duration(std::chrono::milliseconds(step.b)));
      case 5: {
        const std::size_t limit = 1 + step.a % 4;
        RC_ASSERT(admin().revive_dead({}, limit) == model_.revive(limit, clock_.now()));
        return;
      }
      case 6: {
        const EventStatus status = step.a % 2 == 0 ? EventStatus::done : EventStatus::dead;
        const Duration age = std::chrono::seconds(step.b % 60);
        // Rows that ended at the same time may go in any order: so all or none of them.
        const std::int64_t expected = model_.purge(status, age, 10'000, clock_.now());
        RC_ASSERT(admin().count_purgeable(status, age) == expected);
        RC_ASSERT(admin().purge_batch(status, age, 10'000) == expected);
        return;
      }
      default:
        return publish_some(step, false);
    }
  }

  void compare() {
    const std::vector<ModelRow> actual = read_table();
    RC_ASSERT(actual == model_.rows);
  }

  void reset() {
    Transaction tx = storage().begin();
    tx.execute("delete from " + table());
    tx.commit();
    model_.rows.clear();
    known_.clear();
  }

 private:
  static std::string key_of(unsigned number) {
    return number % 3 == 0 ? "" : "k" + std::to_string(number % 3);
  }
  static std::string node_of(unsigned number) { return "n" + std::to_string(number % 3); }

  void publish_some(const OutboxStep& step, bool commit) {
    const unsigned count = 1 + step.a % 3;
    const bool leased = step.b % 2 == 0;
    const Duration lease = leased ? Duration(std::chrono::seconds(1 + step.b % 30)) : Duration{};
    const std::string owner = node_of(step.a);
    std::vector<Event> events;
    std::vector<std::string> keys;
    for (unsigned i = 0; i < count; ++i) {
      EventBuilder builder = Event::builder("E");
      builder.id(EventId("e" + std::to_string(++last_id_))).json("1");
      if (step.b % 7 == 0) builder.deliver_at(clock_.now() + std::chrono::seconds(step.b % 20));
      events.push_back(builder.build());
      keys.push_back(key_of(step.b + i * step.a));
    }
    std::vector<NewOutboxRow> rows;
    for (unsigned i = 0; i < count; ++i) {
      rows.push_back({.event = &events[i], .ordering_key = keys[i], .lease = lease});
    }
    Transaction tx = storage().begin();
    store().insert(tx, owner, rows);
    if (!commit) return tx.rollback();
    tx.commit();
    for (unsigned i = 0; i < count; ++i) {
      model_.rows.push_back({.id = events[i].id().str(),
                             .key = keys[i],
                             .available = events[i].deliver_at().value_or(clock_.now()),
                             .owner = leased ? owner : "",
                             .lease_until = leased ? std::optional(clock_.now() + lease) : std::nullopt});
      known_.push_back({events[i].id(), birth_token});
    }
  }

  void claim_some(const OutboxStep& step) {
    std::vector<std::string> keys;
    if (step.b % 4 == 1) keys = {"k1"};
    if (step.b % 4 == 2) keys = {"k2", "k1", "k2"};
    const std::string owner = node_of(step.a);
    const ClaimRequest request{.owner = owner,
                               .lease = std::chrono::seconds(1 + step.a % 30),
                               .limit = 1 + step.b % 6,
                               .continue_keys = keys,
                               .run_limit = step.a % 2 == 0 ? 1 + step.b % 3 : 1000};
    const std::vector<ClaimedEvent> claimed = store().claim(request);
    RC_ASSERT(model_.check_claim(request, clock_.now(), claimed) == "");
    RC_ASSERT(model_.adopt_deferrals(read_table(), clock_.now()) == "");
    for (const ClaimedEvent& one : claimed) known_.push_back(one.lease);
  }

  /// Any lease ever given, mostly a recent one.
  LeaseRef some_lease(unsigned number) const {
    const std::size_t back = number % 10 == 0 ? number : number % 6;
    return known_[known_.size() - 1 - back % known_.size()];
  }

  void complete_some(const OutboxStep& step) {
    if (known_.empty()) return;
    std::vector<Completion> batch;
    std::set<std::string> ids;
    for (unsigned i = 0; i < 1 + step.a % 3; ++i) {
      const LeaseRef lease = some_lease(step.b + i * 7);
      if (!ids.insert(lease.id.str()).second) continue;  // nobody completes a row twice in a batch
      batch.push_back({.lease = lease,
                       .kind = static_cast<Completion::Kind>((step.a + i) % 5),
                       .failed = Attempt{static_cast<std::int32_t>(1 + step.b % 9)},
                       .delay = std::chrono::milliseconds(step.a * 10),
                       .error = "error " + std::to_string(step.b)});
    }
    std::size_t expected = 0;
    for (const Completion& one : batch) expected += model_.complete(one, clock_.now()) ? 1U : 0U;
    RC_ASSERT(store().complete(batch) == expected);
  }

  void renew_some(const OutboxStep& step) {
    if (known_.empty()) return;
    const std::vector<LeaseRef> asked{some_lease(step.a), some_lease(step.b + 1)};
    const Duration lease = std::chrono::seconds(1 + step.b % 30);
    std::set<EventId> expected;
    for (const LeaseRef& one : asked) {
      if (model_.renew(one, clock_.now() + lease)) expected.insert(one.id);
    }
    const std::vector<EventId> renewed = store().renew(asked, lease);
    RC_ASSERT(std::set<EventId>(renewed.begin(), renewed.end()) == expected);
  }

  std::vector<ModelRow> read_table() {
    Transaction tx = storage().begin();
    const Rows rows = tx.execute("select event_id, coalesce(ordering_key, ''), status, attempts, " +
                                 micros_sql("available_at") + ", " + micros_sql("done_at") +
                                 ", coalesce(last_error, ''), coalesce(owner, ''), " +
                                 micros_sql("lease_until") + ", token from " + table() + " order by seq");
    const auto time = [&](std::size_t row, std::size_t column) {
      return TimePoint(Duration(rows.integer(row, column)));
    };
    const auto maybe = [&](std::size_t row, std::size_t column) {
      return rows.is_null(row, column) ? std::nullopt : std::optional(time(row, column));
    };
    std::vector<ModelRow> actual;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      actual.push_back({.id = rows.text(i, 0),
                        .key = rows.text(i, 1),
                        .status = static_cast<EventStatus>(rows.integer(i, 2)),
                        .attempts = rows.integer(i, 3),
                        .available = time(i, 4),
                        .done = maybe(i, 5),
                        .error = rows.text(i, 6),
                        .owner = rows.text(i, 7),
                        .lease_until = maybe(i, 8),
                        .token = rows.integer(i, 9)});
    }
    return actual;
  }

  OutboxModel model_;
  std::vector<LeaseRef> known_;
  std::uint64_t last_id_ = 0;
};
POSTRIDER_FOR_EACH_BACKEND(OutboxHistory);

TEST_P(OutboxHistory, TheTableIsWhatTheModelSays) {
  const bool held = rc::check("any history of verbs", [this] {
    reset();
    const auto history = *rc::gen::scale(3.0, rc::gen::container<std::vector<OutboxStep>>(any_outbox_step()));
    for (const OutboxStep& step : history) {
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
