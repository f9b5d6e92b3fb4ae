// SPDX-License-Identifier: Apache-2.0
// The SQL function publish, as far as it is PostgreSQL's own; the rest is in
// tests/integration/sql_publish_test.cpp.
#include <gmock/gmock.h>

#include "support/postgres.hpp"

namespace postrider::postgres {
namespace {

class PublishFunction : public test::PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (HasFatalFailure() || IsSkipped()) return;
    connection_.reset(PQconnectdb(url().c_str()));
    ASSERT_EQ(PQstatus(connection_.get()), CONNECTION_OK);
    publish_ = database_->table("publish");
    schema_ = database_->options().schema.str();
  }
  /// The first value of the answer, or what the server complains about.
  std::string ask(const std::string& sql) {
    PGresult* const result = PQexec(connection_.get(), sql.c_str());
    std::string answer = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0
                             ? PQgetvalue(result, 0, 0)
                             : PQresultErrorMessage(result);
    PQclear(result);
    return answer;
  }

  test::NativeConnection connection_;
  std::string publish_;
  std::string schema_;
};

TEST_F(PublishFunction, TakesJsonOfAnyType) {
  for (const std::string payload : {R"('{"a": 1}')", R"('{"a": 1}'::text)", R"('{"a": 1}'::varchar)",
                                    R"('{"a": 1}'::json)", "jsonb_build_object('a', 1)"}) {
    const std::string id = ask("SELECT " + publish_ + "('T', " + payload + ")");
    EXPECT_EQ(ask("SELECT payload::text FROM " + table() + " WHERE event_id = '" + id + "'"), R"({"a": 1})")
        << payload;
  }
}

TEST_F(PublishFunction, ReturnsAUlidOfThisMoment) {
  // Server and test have the same clock. The time, in milliseconds, is in the first ten characters.
  const std::string before = new_event_id().str().substr(0, 10);
  const std::string id = ask("SELECT " + publish_ + "('T', '1')");
  const std::string after = new_event_id().str().substr(0, 10);
  EXPECT_THAT(id, ::testing::MatchesRegex("[0-9A-HJKMNP-TV-Z]{26}"));
  EXPECT_LE(before, id.substr(0, 10));
  EXPECT_LE(id.substr(0, 10), after);
  EXPECT_NE(id, ask("SELECT " + publish_ + "('T', '1')"));
}

TEST_F(PublishFunction, NeedsNoMoreThanTheRightToInsert) {
  const std::string role = schema_ + "_app";
  ask("CREATE ROLE " + role);
  ask("GRANT USAGE ON SCHEMA " + schema_ + " TO " + role);
  ask("GRANT INSERT ON " + table() + " TO " + role);
  ask("SET ROLE " + role);
  EXPECT_EQ(ask("SELECT " + publish_ + "('T', '1', event_id => 'mine', headers => '{\"a\":\"1\"}')"), "mine");
  EXPECT_THAT(ask("SELECT 1 FROM " + table()), ::testing::HasSubstr("permission denied"));
  ask("RESET ROLE");
  ask("REVOKE INSERT ON " + table() + " FROM " + role);
  ask("SET ROLE " + role);
  EXPECT_THAT(ask("SELECT " + publish_ + "('T', '1')"), ::testing::HasSubstr("permission denied"))
      << "as the caller";
  ask("RESET ROLE");
  ask("DROP OWNED BY " + role);
  EXPECT_EQ(ask("DROP ROLE " + role), "");
}

TEST_F(PublishFunction, CallsNobodysFunctionsOfTheSameNames) {
  const std::string other = schema_ + "_other";
  ask("CREATE SCHEMA " + other);
  ask("CREATE FUNCTION " + other + ".char_length(text) RETURNS integer LANGUAGE sql AS 'SELECT 1000'");
  ask("SET search_path = " + other + ", pg_catalog");
  EXPECT_EQ(ask("SELECT char_length('x')"), "1000");
  EXPECT_EQ(ask("SELECT " + publish_ + "('T', '1', event_id => 'safe')"), "safe");
  ask("RESET search_path");
  ask("DROP SCHEMA " + other + " CASCADE");
}

}  // namespace
}  // namespace postrider::postgres
