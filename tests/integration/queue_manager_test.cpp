// SPDX-License-Identifier: Apache-2.0
// EventManager: handlers, their results, retries, the guards against doing things twice.
#include <atomic>
#include <charconv>
#include <latch>
#include <map>
#include <thread>

#include "integration/queue_fixture.hpp"
#include "postrider/error.hpp"
#include "postrider/queue_admin.hpp"
#include "queue/event_queue_parts.hpp"
#include "queue/manager_core.hpp"

namespace postrider {

struct Placed {
  int number = 0;
};

template <>
struct EventCodec<Placed> {
  static constexpr std::string_view type = "Placed";
  static std::string to_json(const Placed& placed) { return std::to_string(placed.number); }
  static Placed from_json(std::string_view json) {
    Placed placed;
    if (std::from_chars(json.data(), json.data() + json.size(), placed.number).ec != std::errc()) {
      throw std::runtime_error("no number");
    }
    return placed;
  }
};

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Result = EventHandledResult;

class QueueManager : public QueueTest {
 protected:
  void open_manual(QueueOptions options = {}) {
    open(true, std::move(options));
    manager_ = std::make_unique<EventManager>(queue(), manager_options());
  }
  EventManager& manager() { return *manager_; }

  std::unique_ptr<EventManager> manager_;
};
POSTRIDER_FOR_EACH_BACKEND(QueueManager);

struct Invoice {
  static constexpr std::string_view id = "invoice";
  std::vector<int>* seen;
  Result handle(const Placed& placed, HandlerContext& context) {
    seen->push_back(placed.number * 100 + context.attempts());
    return Result::success();
  }
};
struct Audit {
  static constexpr std::string_view id = "audit";
  std::vector<std::string>* seen;
  void handle(const Event& event) const { seen->push_back(event.type()); }
};
struct OnlyRaw {
  static constexpr std::string_view id = "raw";
  static constexpr std::string_view type = "Raw";
  std::vector<std::string>* seen;
  void handle(const Event& event) { seen->push_back("raw " + event.type()); }
};

TEST_P(QueueManager, HandlersOfEveryKind) {
  open_manual();
  std::vector<int> invoices;
  std::vector<std::string> seen;
  std::vector<int> typed;
  manager()
      .register_handler(Invoice{&invoices})
      .register_handler(Audit{&seen})
      .register_handler(OnlyRaw{&seen})
      .register_handler<Placed>("typed", [&](const Placed& placed) { typed.push_back(placed.number); })
      .register_handler("raw lambda", "Raw", [&](const Event&, HandlerContext&) { return Result::success(); })
      .register_handler_for_all("all", [](const Event&) {});
  queue().publish(Placed{7});
  queue().publish(event("1", "Raw"));
  EXPECT_EQ(manager().process_available(), 2U);
  EXPECT_THAT(invoices, ElementsAre(701));
  EXPECT_THAT(typed, ElementsAre(7));
  EXPECT_THAT(seen, ElementsAre("Placed", "raw Raw", "Raw"));
  const std::vector<LogEntry> entries = log_entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].status, QueueStatus::completed);
  EXPECT_EQ(entries[0].results.size(), 4U);
}

TEST_P(QueueManager, ADuplicateIdIsAnErrorThatNamesIt) {
  open_manual();
  manager().register_handler<Placed>("mail", [](const Placed&) {});
  try {
    manager().register_handler("mail", "Other", [](const Event&) {});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'mail'"));
  }
}

TEST_P(QueueManager, OnlyTheTransientOneRunsAgain) {
  open_manual();
  std::map<std::string, int> calls;
  manager()
      .register_handler("a", "T", [&](const Event&) { ++calls["a"]; })
      .register_handler("b", "T", [&](const Event&) { ++calls["b"]; })
      .register_handler("c", "T", [&](const Event&) {
        return ++calls["c"] < 3 ? Result::transient_error("busy") : Result::success();
      });
  queue().publish(event());
  EXPECT_EQ(manager().process_available(), 1U);
  EXPECT_EQ(manager().process_available(), 0U) << "it waits for its delay";
  clock_.advance(1s);
  EXPECT_EQ(manager().process_available(), 1U);
  clock_.advance(1s);
  EXPECT_EQ(manager().process_available(), 0U) << "the delay grows";
  clock_.advance(1s);
  EXPECT_EQ(manager().process_available(), 1U);
  EXPECT_EQ(calls, (std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 3}}));
  const LogEntry entry = only_entry();
  EXPECT_EQ(entry.status, QueueStatus::completed);
  EXPECT_EQ(entry.attempts, 3);
  ASSERT_EQ(entry.results.size(), 3U);
  EXPECT_EQ(entry.results[2].failed, Attempt{2});
  EXPECT_EQ(count("event_handler_state"), 3);
  EXPECT_EQ(manager().cleanup_finalized_events(), 3U);
  EXPECT_EQ(count("event_handler_state"), 0);
}

TEST_P(QueueManager, FatalAndTransientIsOnePassWithErrors) {
  open_manual();
  int after = 0;
  manager()
      .register_handler("fatal", "T", [](const Event&) { return Result::unrecoverable_error("never"); })
      .register_handler("transient", "T", [](const Event&) { return Result::transient_error("later"); })
      .register_handler("good", "T", [&](const Event&) { ++after; });
  queue().publish(event());
  EXPECT_EQ(manager().process_available(), 1U);
  const LogEntry entry = only_entry();
  EXPECT_EQ(entry.status, QueueStatus::completed_with_errors);
  EXPECT_EQ(entry.attempts, 1);
  EXPECT_EQ(after, 1) << "all handlers run even when one is fatal";
  ASSERT_EQ(entry.results.size(), 3U);
  EXPECT_EQ(entry.results[0].error, "never");
  EXPECT_EQ(entry.results[1].error, "later");
}

TEST_P(QueueManager, HazardQ3AnExceptionIsTransientAndAttemptsEnd) {
  open_manual();
  int calls = 0;
  manager().register_handler("throws", "T", [&](const Event&) {
    if (++calls % 2 == 0) throw 42;  // NOLINT: whatever users throw
    throw std::runtime_error("lost the plot");
  });
  queue().publish(event());
  for (int i = 0; i < 100 && count("event_log") == 0; ++i) {
    (void)manager().process_available();
    clock_.advance(20s);
  }
  EXPECT_EQ(calls, 10);
  const LogEntry entry = only_entry();
  EXPECT_EQ(entry.status, QueueStatus::completed_with_errors);
  EXPECT_EQ(entry.attempts, 10);
  EXPECT_EQ(entry.results[0].failed, Attempt{10});
  EXPECT_EQ(entry.results[0].error, "an exception that is no std::exception");
}

TEST_P(QueueManager, AHandlerMayHaveItsOwnRules) {
  open_manual();
  int calls = 0;
  manager().register_handler("once more", "T",
                             [&](const Event&) {
                               ++calls;
                               return Result::transient_error("no", 5s);
                             },
                             {.max_attempts = 2});
  queue().publish(event());
  (void)manager().process_available();
  clock_.advance(4s);
  EXPECT_EQ(manager().process_available(), 0U);
  clock_.advance(1s);
  (void)manager().process_available();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(only_entry().status, QueueStatus::completed_with_errors);
}

TEST_P(QueueManager, WhatNobodyHandlesStaysAndIsCounted) {
  open_manual();
  queue().publish(event("1", "Unknown"));
  (void)manager().process_available();
  EXPECT_EQ(count("event_queue", "status = 0 and attempts = 0"), 1);
  EXPECT_EQ(metrics_.get(QueueCounter::queue_unhandled), 1U);
  EXPECT_EQ(manager().process_available(), 0U) << "it must not go round and round";
  int calls = 0;
  manager().register_handler("late", "Unknown", [&](const Event&) { ++calls; });
  clock_.advance(30s);
  (void)manager().process_available();
  EXPECT_EQ(calls, 1);
}

TEST_P(QueueManager, ANodeWithoutTheHandlerIsNotInTheWayOfTheOthers) {
  open_manual();
  const std::unique_ptr<EventQueue> other = make_queue(storage());
  EventManager here(*other, manager_options());
  int mine = 0;
  int yours = 0;
  here.register_handler("mine", "Mine", [&](const Event&) { ++mine; });
  manager().register_handler("yours", "Yours", [&](const Event&) { ++yours; });
  for (int i = 0; i < 3; ++i) queue().publish(event("1", "Yours"));
  queue().publish(event("1", "Mine"));
  (void)here.process_available();
  EXPECT_EQ(mine, 1);
  (void)manager().process_available();  // no time has passed
  EXPECT_EQ(yours, 3);

  // From now on they are not even touched there; after a while one look shows whether they are still left.
  queue().publish(event("1", "Yours"));
  (void)here.process_available();
  EXPECT_EQ(count("event_queue", "token = 0"), 1);
  clock_.advance(30s);
  (void)here.process_available();
  EXPECT_EQ(count("event_queue", "token = 1 and attempts = 0 and status = 0"), 1);
  EXPECT_EQ(metrics_.get(QueueCounter::queue_unhandled), 4U);
}

TEST_P(QueueManager, APayloadThatCannotBeReadIsUnrecoverable) {
  open_manual();
  manager().register_handler<Placed>("typed", [](const Placed&) {});
  queue().publish(event(R"("text")", "Placed"));
  (void)manager().process_available();
  const LogEntry entry = only_entry();
  EXPECT_EQ(entry.status, QueueStatus::completed_with_errors);
  EXPECT_EQ(entry.results[0].error, "cannot read the payload as Placed: no number");
}

TEST_P(QueueManager, ARowThatIsNoEventFails) {
  open_manual();
  manager().register_handler_for_all("all", [](const Event&) {});
  {
    Transaction tx = storage().begin();
    tx.execute(
        "insert into " + database_->table("event_queue") +
            " (event_id, event_type, payload_bytes, headers, available_at)"
            " select 'x', 'T', ?, '[1]', " +
            std::string(storage().kind() == BackendKind::sqlite ? "0" : "timestamp '2000-01-01 00:00:00'"),
        Blob{"abc"});
    tx.commit();
  }
  (void)manager().process_available();
  const LogEntry entry = only_entry();
  EXPECT_EQ(entry.status, QueueStatus::failed);
  ASSERT_EQ(entry.results.size(), 1U);
  EXPECT_THAT(entry.results[0].error, HasSubstr("headers"));
}

TEST_P(QueueManager, OrderPerKeyThroughFailures) {
  open_manual();
  std::vector<std::string> seen;
  bool broken = true;
  manager().register_handler("h", "T", [&](const Event& e) {
    seen.emplace_back(e.payload());
    if (e.payload() == "2" && std::exchange(broken, false)) return Result::transient_error("once");
    return Result::success();
  });
  for (int i = 1; i <= 4; ++i) queue().publish(keyed("k", i));
  (void)manager().process_available();
  EXPECT_THAT(seen, ElementsAre("1", "2"));
  EXPECT_EQ(count("event_queue", "attempts = 0"), 2) << "those behind it were given back";
  clock_.advance(1s);
  (void)manager().process_available();
  EXPECT_THAT(seen, ElementsAre("1", "2", "2", "3", "4"));
}

TEST_P(QueueManager, SubTasksRunOnce) {
  open_manual();
  std::map<std::string, int> done;
  int calls = 0;
  manager().register_handler("h", "T", [&](const Event&, HandlerContext& context) {
    context.once("charge", [&] { ++done["charge"]; });
    if (++calls == 1) throw std::runtime_error("between the two");
    context.once("mail", [&] { ++done["mail"]; });
  });
  queue().publish(event());
  (void)manager().process_available();
  clock_.advance(1s);
  (void)manager().process_available();
  EXPECT_EQ(done, (std::map<std::string, int>{{"charge", 1}, {"mail", 1}}));
  EXPECT_EQ(only_entry().status, QueueStatus::completed);
}

TEST_P(QueueManager, CompleteInTheHandlersTransactionIsExactlyOnce) {
  open_manual();
  {
    Transaction tx = storage().begin();
    tx.execute("create table " + database_->table("effect") + " (n bigint)");
    tx.commit();
  }
  int calls = 0;
  manager()
      .register_handler("effect", "T",
                        [&](const Event&, HandlerContext& context) {
                          ++calls;
                          Transaction tx = storage().begin();
                          tx.execute("insert into " + database_->table("effect") + " values (1)");
                          context.complete(tx);
                          if (calls == 1) throw std::runtime_error("before the commit");
                          tx.commit();
                          if (calls == 2) throw std::runtime_error("after the commit");
                        })
      .register_handler("other", "T", [&](const Event&) {
        return calls < 3 && count("effect") == 0 ? Result::transient_error("wait") : Result::success();
      });
  queue().publish(event());
  for (int i = 0; i < 4; ++i) {
    (void)manager().process_available();
    clock_.advance(5s);
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(count("effect"), 1);
  EXPECT_EQ(only_entry().status, QueueStatus::completed);
}

TEST_P(QueueManager, AHandlerThatLostItsClaimWritesNothing) {
  open_manual();
  int calls = 0;
  manager().register_handler("h", "T", [&](const Event&, HandlerContext& context) {
    if (++calls > 1) return;
    EXPECT_EQ(QueueAdmin(storage()).requeue({.ids = {context.claim().id}}), 1);
    EXPECT_EQ(queue().poll().value().attempts, 2);  // somebody else takes it
    Transaction tx = storage().begin();
    EXPECT_THROW(context.complete(tx), Error);
    context.complete(tx);
  });
  queue().publish(event());
  (void)manager().process_available(1);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(count("event_log"), 0);
  EXPECT_EQ(count("event_queue", "status = 1 and attempts = 2"), 1);
  EXPECT_EQ(metrics_.get(QueueCounter::queue_stale), 1U);
}

TEST_P(QueueManager, HazardQ7AWorkerKillerEndsInQuarantine) {
  QueueOptions options;
  options.max_crashes = 3;
  open_manual(options);
  const QueueId killer = queue().publish(event("0")).id();
  for (int i = 1; i <= 5; ++i) queue().publish(event(std::to_string(i)));
  // The first node claims all six and dies; from then on it is always the same one that kills.
  EXPECT_EQ(queue().poll(6).size(), 6U);
  int handled = 0;
  manager().register_handler("h", "T", [&](const Event&) { ++handled; });
  for (int crash = 2; crash <= 3; ++crash) {
    clock_.advance(61s);
    const auto claimed = queue().poll();  // the suspect alone: dies with it
    ASSERT_TRUE(claimed.has_value());
    EXPECT_EQ(claimed->claim.id, killer);
    EXPECT_EQ(claimed->crashes, crash - 1);
  }
  clock_.advance(61s);
  (void)manager().process_available();
  EXPECT_EQ(handled, 5);
  EXPECT_EQ(count("event_log"), 5);
  EXPECT_EQ(count("event_queue", "quarantined_at is not null"), 1);
  EXPECT_EQ(metrics_.get(QueueCounter::queue_quarantined), 1U);
}

TEST_P(QueueManager, AfterAFirstCrashWhatWasInProgressIsTakenUpAtOnce) {
  open_manual();
  for (int i = 0; i < 6; ++i) queue().publish(event());
  EXPECT_EQ(queue().poll(6).size(), 6U);
  clock_.advance(61s);
  std::int64_t at_once = 0;
  manager().register_handler("h", "T", [&](const Event&) {
    at_once = std::max(at_once, count("event_queue", "status = 1 and crashes = 1"));
  });
  EXPECT_EQ(manager().process_available(), 6U);
  EXPECT_EQ(at_once, 6);
}

TEST_P(QueueManager, ASuspectThatTakesForEverDoesNotKeepTheOthersWaiting) {
  open_manual();
  for (int i = 0; i < 3; ++i) queue().publish(event());
  for (int crash = 0; crash < 2; ++crash) {
    EXPECT_EQ(queue().poll(3).size(), 3U);
    clock_.advance(61s);
  }
  QueueOptions options = options_;
  detail::QueueParts parts(storage(), options);
  const EventManagerOptions defaults;
  ManagerCore core(parts, defaults);
  ASSERT_EQ(core.fetch(3).events, 1U) << "alone";
  for (int i = 0; i < 2; ++i) {
    clock_.advance(25s);
    EXPECT_EQ(core.held.renew_due(), 1U) << "its handler still runs";
    EXPECT_EQ(core.fetch(3).events, 0U);
  }
  clock_.advance(10s);
  EXPECT_EQ(core.fetch(3).events, 1U) << "a minute is enough";
}

TEST_P(QueueManager, SuspectsAreHandledOneAtATime) {
  open_manual();
  for (int i = 0; i < 6; ++i) queue().publish(event());
  for (int crash = 0; crash < 2; ++crash) {
    EXPECT_EQ(queue().poll(6).size(), 6U);
    clock_.advance(61s);
  }
  for (int i = 0; i < 3; ++i) queue().publish(event());
  int suspects = 0;
  int fresh = 0;
  manager().register_handler("h", "T", [&](const Event&, HandlerContext& context) {
    ++(context.crashes() > 0 ? suspects : fresh);
    // Should this process die now, at most one of the six is blamed for it.
    EXPECT_LE(count("event_queue", "status = 1 and crashes > 1"), 1);
  });
  (void)manager().process_available();
  EXPECT_EQ(suspects, 6);
  EXPECT_EQ(fresh, 3);
}

TEST_P(QueueManager, ASuspectWhoseHandlerFailedStillGoesAlone) {
  open_manual();
  for (int i = 0; i < 6; ++i) queue().publish(event());
  for (int crash = 0; crash < 2; ++crash) {
    EXPECT_EQ(queue().poll(6).size(), 6U);
    clock_.advance(61s);
  }
  int calls = 0;
  manager().register_handler("h", "T", [&](const Event&) {
    // Each comes back once. Beside another suspect it would be blamed for a crash that is not its own.
    EXPECT_EQ(count("event_queue", "status = 1 and crashes > 1"), 1);
    return ++calls <= 6 ? EventHandledResult::transient_error("not yet") : EventHandledResult::success();
  });
  EXPECT_EQ(manager().process_available(), 6U);
  clock_.advance(61s);
  EXPECT_EQ(manager().process_available(), 6U);
  EXPECT_EQ(calls, 12);
  EXPECT_EQ(count("event_log"), 6);
}

}  // namespace
}  // namespace postrider
