// SPDX-License-Identifier: Apache-2.0
#include "storage/transaction_control.hpp"

#include <gtest/gtest.h>

#include <array>
#include <ostream>

namespace postrider {
namespace {

using enum TransactionControl;
using enum BackendKind;

constexpr std::array all{sqlite, postgres, mariadb};

TEST(TransactionControl, WhatEndsATransactionDoesSoOnEveryDatabase) {
  for (const BackendKind kind : all) {
    for (const char* sql : {"begin",
                            "BEGIN IMMEDIATE",
                            "begin;",
                            "commit",
                            "Commit work",
                            "COMMIT AND CHAIN",
                            "end",
                            "END TRANSACTION",
                            "abort",
                            "rollback",
                            "ROLLBACK;",
                            "rollback work",
                            "rollback transaction",
                            "ROLLBACK AND CHAIN",
                            "rollback work and chain",
                            "rollback prepared 'x'",
                            "rollback release",
                            "start transaction",
                            "START TRANSACTION READ ONLY",
                            "prepare transaction 'x'",
                            "commit prepared 'x'"}) {
      EXPECT_EQ(transaction_control(kind, sql), ends) << to_string(kind) << ": " << sql;
    }
  }
}

TEST(TransactionControl, WordsAreFoundBehindSpaceCommentsAndEmptyStatements) {
  for (const BackendKind kind : all) {
    for (const char* sql : {" \t\r\n\f\vrollback", "-- a comment\nrollback", "/* a comment */rollback",
                            "/**/ /* - */ -- x\n\n rollback", "; ;rollback", ";/* x */;\nrollback",
                            "\xEF\xBB\xBFrollback", "rollback/**/;", "rollback-- \n"}) {
      EXPECT_EQ(transaction_control(kind, sql), ends) << to_string(kind) << ": " << sql;
    }
  }
}

TEST(TransactionControl, CommentsAreThoseOfTheDatabase) {
  EXPECT_EQ(transaction_control(postgres, "/* /* */ rollback */ select 1"), none);
  EXPECT_EQ(transaction_control(postgres, "/* /* */ select */ rollback"), ends);
  EXPECT_EQ(transaction_control(sqlite, "/* /* */ rollback"), ends) << "SQLite does not nest comments";
  EXPECT_EQ(transaction_control(mariadb, "/* /* */ rollback"), ends);
  EXPECT_EQ(transaction_control(mariadb, "# a comment\nrollback"), ends);
  EXPECT_EQ(transaction_control(mariadb, "--\trollback\nselect 1"), none);
  for (const char* sql :
       {"/*! rollback */", "/*!50000rollback*/", "/*M!100100 rollback */", "/*! */rollback"}) {
    EXPECT_EQ(transaction_control(mariadb, sql), ends) << "MariaDB runs such a comment: " << sql;
  }
  EXPECT_EQ(transaction_control(postgres, "/*! rollback */ select 1"), none);
}

TEST(TransactionControl, SavepointsAreAllowedAndGoingBackToOneUndoes) {
  for (const BackendKind kind : all) {
    for (const char* sql : {"savepoint a", "SAVEPOINT rollback", "release a", "RELEASE SAVEPOINT a"}) {
      EXPECT_EQ(transaction_control(kind, sql), none) << to_string(kind) << ": " << sql;
    }
    for (const char* sql :
         {"rollback to a", "ROLLBACK TO SAVEPOINT a", "rollback work to a", "rollback /**/ to b",
          "ROLLBACK TRANSACTION TO SAVEPOINT a", ";rollback\nto a;"}) {
      EXPECT_EQ(transaction_control(kind, sql), undoes) << to_string(kind) << ": " << sql;
    }
  }
}

TEST(TransactionControl, OrdinaryStatementsAreLeftAlone) {
  for (const BackendKind kind : all) {
    for (const char* sql :
         {"", " ", ";", "/* open", "-- commit", "select 'rollback'", "insert into t values (?)",
          "update commit set a = 1", "delete from t", "with a as (select 1) select * from a", "(select 1)",
          "create table begin_ (a int)", "set transaction isolation level serializable"}) {
      EXPECT_EQ(transaction_control(kind, sql), none) << to_string(kind) << ": " << sql;
    }
  }
  for (const char* sql : {"committed", "beginning", "'rollback'", "\"rollback\""}) {
    EXPECT_EQ(transaction_control(sqlite, sql), none) << sql;
    EXPECT_EQ(transaction_control(postgres, sql), none) << sql;
    EXPECT_EQ(transaction_control(mariadb, sql), hides) << "an unknown word: " << sql;
  }
  EXPECT_EQ(transaction_control(postgres, "lock table t in exclusive mode"), none);
  EXPECT_EQ(transaction_control(postgres, "prepare p as select 1"), none);
  EXPECT_EQ(transaction_control(postgres, "call p()"), none) << "cannot commit inside a transaction";
  EXPECT_EQ(transaction_control(postgres, "set autocommit = on"), none) << "the server refuses it";
}

TEST(TransactionControl, MariaDBEndsTransactionsInWaysOfItsOwn) {
  for (const char* sql : {"lock tables t write", "LOCK TABLE t READ", "unlock tables", "xa start 'x'",
                          "set autocommit = 1", "SET @@autocommit=0", "set session autocommit = 0",
                          "set @@session.autocommit = 1", "set time_zone = '+00:00', autocommit = 1",
                          "set `autocommit` = 1", "set @a = 'it\\'s', autocommit = 0"}) {
    EXPECT_EQ(transaction_control(mariadb, sql), ends) << sql;
  }
  for (const char* sql : {"set @autocommit = 1", "set names utf8mb4", "set @a = 'autocommit'",
                          "set @a = \"autocommit\"", "set @a = 'it''s autocommit'", "start"}) {
    EXPECT_NE(transaction_control(mariadb, sql), ends) << sql;
  }
}

TEST(TransactionControl, WhatMariaDBHidesInOneStatementIsNotTrusted) {
  for (const char* sql : {"call p()", "execute immediate 'rollback'", "execute s", "if 1 then commit; end if",
                          "set statement max_statement_time = 1 for commit", "x: loop commit; end loop",
                          "do sleep(0)", "while 0 do commit; end while", "start slave"}) {
    EXPECT_EQ(transaction_control(mariadb, sql), hides) << sql;
  }
}

}  // namespace
}  // namespace postrider
