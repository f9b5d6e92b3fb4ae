// SPDX-License-Identifier: Apache-2.0
#include "postrider/transaction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "postrider/error.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What happened to a session, told from outside: the session itself is gone when its transaction has ended.
struct Trace {
  std::vector<std::string> calls;
  std::optional<Error> commit_error;
  bool alive = true;
};

class FakeSession final : public detail::TxSession {
 public:
  explicit FakeSession(Trace& trace) : trace_(trace) {}
  ~FakeSession() override { trace_.alive = false; }
  [[nodiscard]] BackendKind kind() const noexcept override { return BackendKind::postgres; }
  [[nodiscard]] bool active() const noexcept override { return active_; }
  Rows execute(std::string_view sql, std::span<const Value> /*params*/) override {
    trace_.calls.emplace_back(sql);
    return {};
  }
  void commit() override {
    trace_.calls.emplace_back("COMMIT");
    if (trace_.commit_error.has_value()) throw Error(*trace_.commit_error);
    active_ = false;
  }
  void rollback() noexcept override {
    trace_.calls.emplace_back("ROLLBACK");
    active_ = false;
  }

 private:
  Trace& trace_;
  bool active_ = true;
};

class TransactionTest : public ::testing::Test {
 protected:
  Transaction begin() { return Transaction(std::make_unique<FakeSession>(trace_)); }
  /// Both kinds of callback, so that a test sees which ones ran.
  void watch(Transaction& tx) {
    tx.after_commit([this] { ran_.emplace_back("committed"); });
    tx.after_rollback([this] { ran_.emplace_back("rolled back"); });
  }
  Trace trace_;
  std::vector<std::string> ran_;
};

TEST_F(TransactionTest, CallbacksRunInOrderAfterTheCommit) {
  Transaction tx = begin();
  tx.after_commit([&] { ran_.push_back("1 after " + trace_.calls.back()); });
  tx.after_commit([&] { ran_.emplace_back("2"); });
  tx.after_rollback([&] { ran_.emplace_back("rolled back"); });
  tx.commit();
  EXPECT_THAT(ran_, ElementsAre("1 after COMMIT", "2"));
}

TEST_F(TransactionTest, HazardO11_AFailingCallbackDoesNotStopTheOthers) {
  Transaction tx = begin();
  tx.after_commit([&] { ran_.emplace_back("1"); });
  tx.after_commit([] { throw std::runtime_error("first trouble"); });
  tx.after_commit([&] { ran_.emplace_back("2"); });
  tx.after_commit([] { throw 42; });  // NOLINT(hicpp-exception-baseclass)
  tx.after_commit([&] { ran_.emplace_back("3"); });
  try {
    tx.commit();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::hook_failed);
    EXPECT_THAT(error.what(), HasSubstr("first trouble"));
    EXPECT_THAT(error.what(), HasSubstr("not a std::exception"));
    EXPECT_THAT(error.what(), HasSubstr("committed"));
    EXPECT_FALSE(error.retryable());
  }
  EXPECT_THAT(ran_, ElementsAre("1", "2", "3"));
  EXPECT_THAT(trace_.calls, ElementsAre("COMMIT"));
}

TEST_F(TransactionTest, TheConnectionIsFreeBeforeTheCallbacksRun) {
  Transaction tx = begin();
  bool alive = true;
  tx.after_commit([&] { alive = trace_.alive; });
  tx.commit();
  EXPECT_FALSE(alive) << "a callback may begin the next transaction on the same connection";
  EXPECT_EQ(tx.kind(), BackendKind::postgres) << "still answers";
  EXPECT_FALSE(tx.active());
}

TEST_F(TransactionTest, DestroyedWithoutCommitItRollsBack) {
  {
    Transaction tx = begin();
    watch(tx);
  }
  EXPECT_THAT(trace_.calls, ElementsAre("ROLLBACK"));
  EXPECT_THAT(ran_, ElementsAre("rolled back"));
}

TEST_F(TransactionTest, ACallbackThatThrowsInTheDestructorIsToldAndContained) {
  ::testing::internal::CaptureStderr();
  {
    Transaction tx = begin();
    tx.after_rollback([] { throw std::runtime_error("lost trouble"); });
    tx.after_rollback([&] { ran_.emplace_back("next"); });
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("lost trouble"));
  EXPECT_THAT(ran_, ElementsAre("next"));
}

TEST_F(TransactionTest, RollbackRunsItsCallbacksOnce) {
  Transaction tx = begin();
  watch(tx);
  tx.rollback();
  tx.rollback();
  EXPECT_THAT(trace_.calls, ElementsAre("ROLLBACK"));
  EXPECT_THAT(ran_, ElementsAre("rolled back"));
}

TEST_F(TransactionTest, AFailedCommitCountsAsRollback) {
  trace_.commit_error.emplace(ErrorCode::contention, Error::Facts{.sqlstate = "40001", .retryable = true}, "no commit");
  Transaction tx = begin();
  watch(tx);
  try {
    tx.commit();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::contention);
    EXPECT_TRUE(error.retryable());
  }
  EXPECT_THAT(ran_, ElementsAre("rolled back"));
  EXPECT_FALSE(tx.active());
}

TEST_F(TransactionTest, AFailedCommitWithAFailedCallbackTellsBoth) {
  trace_.commit_error.emplace(ErrorCode::contention, Error::Facts{.sqlstate = "40001", .retryable = true}, "no commit");
  Transaction tx = begin();
  tx.after_rollback([] { throw std::runtime_error("and this"); });
  try {
    tx.commit();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::contention) << "the cause, not its consequence";
    EXPECT_EQ(error.sqlstate(), "40001");
    EXPECT_TRUE(error.retryable());
    EXPECT_THAT(error.what(), HasSubstr("postrider: no commit"));
    EXPECT_THAT(error.what(), HasSubstr("and this"));
  }
}

TEST_F(TransactionTest, ACommitInDoubtRunsNeitherKind) {
  trace_.commit_error.emplace(ErrorCode::unavailable, Error::Facts{.in_doubt = true}, "cut");
  Transaction tx = begin();
  watch(tx);
  try {
    tx.commit();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_TRUE(error.in_doubt());
  }
  EXPECT_THAT(ran_, IsEmpty());
}

TEST_F(TransactionTest, AnEndedTransactionRefusesEverything) {
  Transaction tx = begin();
  tx.commit();
  for (const std::function<void()>& action : std::vector<std::function<void()>>{
           [&] { tx.commit(); }, [&] { tx.after_commit([] {}); }, [&] { tx.after_rollback([] {}); },
           [&] { tx.execute("select 1"); }}) {
    try {
      action();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_in_transaction) << error.what();
    }
  }
}

TEST_F(TransactionTest, AMovedFromTransactionDoesNothing) {
  {
    Transaction first = begin();
    watch(first);
    Transaction second(std::move(first));
    EXPECT_FALSE(first.active());  // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(second.active());
    second.commit();
  }
  EXPECT_THAT(trace_.calls, ElementsAre("COMMIT"));
  EXPECT_THAT(ran_, ElementsAre("committed"));
}

TEST_F(TransactionTest, AnAdoptedOneIsNeverEnded) {
  {
    AdoptedTx tx(std::make_unique<FakeSession>(trace_));
    EXPECT_TRUE(tx.adopted());
    tx.execute("insert");
  }
  EXPECT_THAT(trace_.calls, ElementsAre("insert"));
}

TEST_F(TransactionTest, ScopesNestPerThread) {
  Transaction outer = begin();
  Trace other_trace;
  AdoptedTx inner(std::make_unique<FakeSession>(other_trace));
  EXPECT_EQ(TxContext::current(), nullptr);
  {
    const TxScope one(outer);
    EXPECT_EQ(TxContext::current(), &outer);
    {
      const TxScope two(inner);
      EXPECT_EQ(TxContext::current(), &inner);
      const std::jthread elsewhere([] { EXPECT_EQ(TxContext::current(), nullptr); });
    }
    EXPECT_EQ(TxContext::current(), &outer);
  }
  EXPECT_EQ(TxContext::current(), nullptr);
}

}  // namespace
}  // namespace postrider
