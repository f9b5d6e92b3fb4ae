// SPDX-License-Identifier: Apache-2.0
// What is undone inside a transaction was never published, and nobody but its object ends a transaction.
#include <gmock/gmock.h>

#include "core/failpoint.hpp"
#include "integration/outbox_fixture.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OutboxSavepoints : public OutboxTest {
 protected:
  /// Listeners run inside `commit()`: what it has not delivered when it returns is not on the hot path.
  OutboxOptions inline_options() {
    OutboxOptions chosen = without_poller();
    chosen.inline_dispatch = true;
    return chosen;
  }
  static Event numbered(const std::string& id, const std::string& payload = "{}") {
    return Event::builder("T").id(EventId{id}).json(payload).build();
  }
};

TEST_P(OutboxSavepoints, AnEventBehindASavepointThatIsRolledBackToIsNoPhantom) {
  open();
  Outbox outbox{*storage_, inline_options()};
  start(outbox);
  auto tx = storage_->begin();
  outbox.publish(tx, event("T", "1"));
  tx.execute("savepoint a");
  outbox.publish(tx, {event("T", "2"), event("T", "3")});
  tx.execute("rollback to savepoint a");
  outbox.publish(tx, event("T", "4"));
  tx.commit();
  EXPECT_THAT(payloads(seen_), ElementsAre("1", "4"));
  EXPECT_EQ(seen_.received()[0].delivery.source, Source::hot) << "looked up, and there";
  EXPECT_EQ(counts().done, 2);
  EXPECT_EQ(counts().pending, 0);
}

TEST_P(OutboxSavepoints, AReleasedSavepointChangesNothing) {
  open();
  Outbox outbox{*storage_, inline_options()};
  start(outbox);
  auto tx = storage_->begin();
  tx.execute("savepoint a");
  outbox.publish(tx, event("T", "1"));
  tx.execute("release savepoint a");
  tx.commit();
  EXPECT_THAT(payloads(seen_), ElementsAre("1"));
}

TEST_P(OutboxSavepoints, AnEventPublishedAgainAfterTheRollbackIsDeliveredOnceAndAsTheTableHasIt) {
  open();
  Outbox outbox{*storage_, inline_options()};
  start(outbox);
  auto tx = storage_->begin();
  tx.execute("savepoint a");
  outbox.publish(tx, numbered("e", "1"));
  tx.execute("rollback to savepoint a");
  outbox.publish(tx, numbered("e", "2"));
  tx.commit();
  EXPECT_THAT(payloads(seen_), ElementsAre("2"));
}

TEST_P(OutboxSavepoints, ADatabaseThatFailsAfterTheCommitCostsLatencyNotTheCommit) {
  open(true);
  std::vector<std::string> logged;
  OutboxOptions chosen = inline_options();
  chosen.log = [&](LogLevel, std::string_view line) { logged.emplace_back(line); };
  Outbox outbox{*storage_, chosen};
  start(outbox);
  auto tx = storage_->begin();
  outbox.publish(tx, event("T", "1"));
  tx.execute("savepoint a");
  tx.execute("rollback to savepoint a");
  failpoints::set("outbox.publish.after_commit", [] { throw Error(ErrorCode::unavailable, "it is away"); });
  EXPECT_NO_THROW(tx.commit());
  failpoints::clear();
  EXPECT_THAT(logged, ElementsAre(HasSubstr("the poller will bring it")));
  EXPECT_THAT(payloads(seen_), IsEmpty());
  clock_.advance(chosen.lease + 1s);
  EXPECT_EQ(outbox.poll(), 1U);
  EXPECT_THAT(payloads(seen_), ElementsAre("1"));
}

TEST_P(OutboxSavepoints, StatementsThatEndTheTransactionAreRefusedAndItGoesOn) {
  open();
  Outbox outbox{*storage_, inline_options()};
  start(outbox);
  std::vector<std::string> statements{"begin",    "commit",
                                      "rollback", "ROLLBACK AND CHAIN",
                                      "end",      " -- a comment\n;/* and one */ commit and chain",
                                      "abort",    "start transaction"};
  if (backend() == "mariadb") {
    for (const char* more :
         {"lock tables x write", "unlock tables", "set autocommit = 1", "/*! rollback */"}) {
      statements.emplace_back(more);
    }
  }
  auto tx = storage_->begin();
  outbox.publish(tx, event("T", "1"));
  for (const std::string& sql : statements) {
    try {
      tx.execute(sql);
      ADD_FAILURE() << sql << " was let through";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("call commit() or rollback()"));
    }
  }
  EXPECT_TRUE(tx.active());
  EXPECT_EQ(counts().pending, 0) << "nothing has committed it";
  outbox.publish(tx, event("T", "2"));
  tx.commit();
  EXPECT_THAT(payloads(seen_), ElementsAre("1", "2"));
  EXPECT_EQ(counts().done, 2);
}

TEST_P(OutboxSavepoints, ASecondStatementInOneTextIsNotRun) {
  open();
  Outbox outbox{*storage_, inline_options()};
  start(outbox);
  for (const char* sql : {"select 1; rollback", "select 1; commit", "savepoint a; rollback"}) {
    auto tx = storage_->begin();
    outbox.publish(tx, event());
    EXPECT_THROW(tx.execute(sql), Error) << sql;
    tx.rollback();
    EXPECT_EQ(counts().pending, 0) << sql;
  }
  EXPECT_THAT(payloads(seen_), IsEmpty());
}

TEST_P(OutboxSavepoints, AnAdoptedTransactionMayDoAsItLikes) {
  open();
  Outbox outbox{*storage_, inline_options()};
  start(outbox);
  const auto foreign = connect_foreign();
  foreign->begin();
  AdoptedTx tx = foreign->adopt();
  Staged kept = outbox.publish(tx, event("T", "1"));
  tx.execute("savepoint a");
  Staged undone = outbox.publish(tx, event("T", "2"));
  tx.execute("rollback to savepoint a");
  tx.execute("commit");
  kept.committed();
  undone.committed();
  EXPECT_THAT(payloads(seen_), ElementsAre("1"));
}

#ifdef POSTRIDER_WITH_MARIADB
TEST_P(OutboxSavepoints, AProcedureThatRollsBackLeavesNoPhantom) {
  if (backend() != "mariadb") GTEST_SKIP() << "procedures commit and roll back on MariaDB only";
  open();
  Outbox outbox{*storage_, inline_options()};
  start(outbox);
  {
    auto tx = storage_->begin();
    outbox.publish(tx, event("T", "1"));
    tx.execute("execute immediate 'rollback and chain'");
    outbox.publish(tx, event("T", "2"));
    tx.commit();
    EXPECT_THAT(payloads(seen_), ElementsAre("2"));
  }
  auto tx = storage_->begin();
  outbox.publish(tx, event("T", "3"));
  EXPECT_THROW(tx.execute("execute immediate 'rollback'"), Error);
  EXPECT_THROW(tx.commit(), Error);
  EXPECT_THAT(payloads(seen_), ElementsAre("2"));
}
#endif

POSTRIDER_FOR_EACH_BACKEND(OutboxSavepoints);

}  // namespace
}  // namespace postrider
