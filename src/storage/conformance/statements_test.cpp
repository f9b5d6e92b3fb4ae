// SPDX-License-Identifier: Apache-2.0
// What a user's own statement in a transaction does, and how its mistakes are told: the same on every
// database.
#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>

#include "postrider/error.hpp"
#include "support/backend.hpp"
#include "support/foreign_connection.hpp"

namespace postrider {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Statements : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_ = std::make_unique<test::TestDatabase>(backend());
  }
  void TearDown() override {
    if (!made_) return;
    Transaction tx = storage().begin();
    tx.execute("drop table " + mine());
    tx.commit();
  }
  Storage& storage() { return database_->storage(); }
  /// A table of the user's own, with the rows 1 and 2.
  std::string mine() const { return database_->table("mine"); }
  void make_mine() {
    Transaction ddl = storage().begin();  // alone: on MariaDB it commits by itself
    ddl.execute("create table " + mine() + " (a bigint, b varchar(20))");
    ddl.commit();
    made_ = true;
    Transaction tx = storage().begin();
    tx.execute("insert into " + mine() + " values (1, 'x'), (2, 'y')");
    tx.commit();
  }
  template <class F>
  static Error error_of(const F& action) {
    try {
      action();
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return Error(ErrorCode::database, "nothing was thrown");
  }

  std::unique_ptr<test::TestDatabase> database_;
  bool made_ = false;
};

TEST_P(Statements, AWrongNumberOfValuesIsTheCallersMistakeAndDoesNoHarm) {
  Transaction tx = storage().begin();
  for (const Error& error :
       {error_of([&] { tx.execute("select ?, ?", 1); }), error_of([&] { tx.execute("select ?, ?"); }),
        error_of([&] { tx.execute("select ?", 1, 2); }), error_of([&] { tx.execute("select 1", 1); })}) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    EXPECT_FALSE(error.retryable());
    EXPECT_FALSE(error.connection_lost());
    EXPECT_THAT(error.what(), HasSubstr("placeholder"));
    EXPECT_THAT(error.what(), HasSubstr("cannot run 'select"));
  }
  EXPECT_THAT(error_of([&] { tx.execute("select ?, ?", 1); }).what(),
              HasSubstr("it has 2 placeholders and was given 1 value"));
  EXPECT_EQ(tx.execute("select 7").integer(0, 0), 7) << "the transaction goes on";
  tx.commit();
}

TEST_P(Statements, AnAdoptedTransactionCountsValuesToo) {
  const auto foreign = test::ForeignConnection::open(storage().kind(), database_->url());
  foreign->begin();
  AdoptedTx tx = foreign->adopt();
  const Error error = error_of([&] { tx.execute("select ?, ?", 1); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("it has 2 placeholders and was given 1 value"));
  EXPECT_EQ(tx.execute("select 7").integer(0, 0), 7);
  foreign->rollback();
}

TEST_P(Statements, OnlyChangedRowsAreAffected) {
  make_mine();
  Transaction tx = storage().begin();
  EXPECT_EQ(tx.execute("insert into " + mine() + " values (3, 'z')").affected, 1);
  EXPECT_EQ(tx.execute("select * from " + mine()).affected, 0);
  EXPECT_EQ(tx.execute("select * from " + mine()).size(), 3U);
  EXPECT_EQ(tx.execute("update " + mine() + " set b = 'u' where a > ?", 1).affected, 2);
  EXPECT_EQ(tx.execute("select a from " + mine() + " where a = ?", 99).affected, 0);
  EXPECT_EQ(tx.execute("delete from " + mine()).affected, 3);
  tx.rollback();
}

TEST_P(Statements, AnAdoptedTransactionCountsChangedRowsTheSameWay) {
  make_mine();
  const auto foreign = test::ForeignConnection::open(storage().kind(), database_->url());
  foreign->begin();
  AdoptedTx tx = foreign->adopt();
  EXPECT_EQ(tx.execute("update " + mine() + " set b = 'u'").affected, 2);
  EXPECT_EQ(tx.execute("select * from " + mine()).affected, 0);
  foreign->rollback();
}

TEST_P(Statements, ValuesArriveAsWhatTheyAre) {
  make_mine();
  Transaction tx = storage().begin();
  const char* const no_text = nullptr;
  tx.execute("insert into " + mine() + " values (?, ?)", std::optional<int>{}, no_text);
  tx.execute("insert into " + mine() + " values (?, ?)", std::optional<int>{7},
             std::optional<std::string>{"seven"});
  EXPECT_EQ(tx.execute("select count(*) from " + mine() + " where a is null and b is null").integer(0, 0), 1);
  EXPECT_EQ(tx.execute("select b from " + mine() + " where a = ?", 7).text(0, 0), "seven");
  tx.rollback();
}

TEST_P(Statements, AMissingTableOfTheUsersOwnIsNotBlamedOnMigration) {
  Transaction tx = storage().begin();
  const Error error = error_of([&] { tx.execute("select a from no_such_table_of_mine"); });
  EXPECT_EQ(error.code(), ErrorCode::database) << error.what();
  EXPECT_THAT(error.what(), Not(HasSubstr("migrate")));
  EXPECT_THAT(error.what(), HasSubstr("no_such_table_of_mine"));
}

TEST_P(Statements, AnErrorQuotesTheBeginningOfTheStatement) {
  Transaction tx = storage().begin();
  EXPECT_THAT(error_of([&] { tx.execute("selec 1"); }).what(), HasSubstr("cannot run 'selec 1'"));
  Transaction other = storage().kind() == BackendKind::sqlite ? std::move(tx) : storage().begin();
  const std::string what =
      error_of([&] { other.execute("select no_such_column, '" + std::string(200, 'x') + "'"); }).what();
  EXPECT_THAT(what, HasSubstr("cannot run 'select no_such_column, 'xxx"));
  EXPECT_THAT(what, HasSubstr("x…'"));
}

POSTRIDER_FOR_EACH_BACKEND(Statements);

}  // namespace
}  // namespace postrider
