// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/errors.hpp"

#include <gtest/gtest.h>

#include <string>

#include "backends/postgres/storage.hpp"
#include "postrider/error.hpp"

namespace postrider::postgres {
namespace {

struct Case {
  const char* sqlstate;
  ErrorCode code;
  bool retryable;
  bool connection_lost;
};

TEST(PostgresErrors, SqlstatesMeanWhatTheTableSays) {
  const Case cases[] = {
      {"23505", ErrorCode::conflict, false, false},    {"40001", ErrorCode::contention, true, false},
      {"40P01", ErrorCode::contention, true, false},   {"55P03", ErrorCode::contention, true, false},
      {"53100", ErrorCode::storage_full, true, false}, {"42P01", ErrorCode::database, false, false},
      {"3F000", ErrorCode::database, false, false},    {"57P01", ErrorCode::unavailable, true, true},
      {"08P01", ErrorCode::database, false, false},    {"42P18", ErrorCode::invalid_argument, false, false},
      {"57P02", ErrorCode::unavailable, true, true},   {"57P03", ErrorCode::unavailable, true, true},
      {"08006", ErrorCode::unavailable, true, true},   {"57014", ErrorCode::timeout, true, false},
      {"22001", ErrorCode::database, false, false},    {"42601", ErrorCode::database, false, false},
  };
  for (const Case& c : cases) {
    const Error error = make_error("cannot do it", {.sqlstate = c.sqlstate, .message = "because"});
    EXPECT_EQ(error.code(), c.code) << c.sqlstate;
    EXPECT_EQ(error.retryable(), c.retryable) << c.sqlstate;
    EXPECT_EQ(error.connection_lost(), c.connection_lost) << c.sqlstate;
    EXPECT_EQ(error.sqlstate(), c.sqlstate);
    EXPECT_FALSE(error.in_doubt());
  }
}

TEST(PostgresErrors, LostConnectionIsUnavailableWhateverWasSaid) {
  const Error error = make_error("cannot do it", {.sqlstate = "22001", .connection_lost = true});
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_TRUE(error.retryable());
  EXPECT_TRUE(error.connection_lost());
}

TEST(PostgresErrors, DoubtIsNotToBeRepeatedBlindly) {
  const Error error = make_error("cannot commit", {.connection_lost = true, .in_doubt = true});
  EXPECT_TRUE(error.in_doubt());
  EXPECT_FALSE(error.retryable());
  EXPECT_NE(std::string(error.what()).find("may have been committed"), std::string::npos) << error.what();
}

TEST(PostgresErrors, OnlyAMissingTableOfOursHintsAtMigrate) {
  const Error theirs =
      make_error("x", {.sqlstate = "42P01", .message = "relation \"orders\" does not exist"});
  EXPECT_EQ(std::string(theirs.what()).find("migrate"), std::string::npos) << theirs.what();
  const Error error = make_error(
      "cannot claim", {.sqlstate = "42P01", .message = "relation \"shop.outbox_event\" does not exist"});
  EXPECT_EQ(error.code(), ErrorCode::schema);
  EXPECT_NE(std::string(error.what()).find("storage->migrate()"), std::string::npos) << error.what();
}

TEST(PostgresRedaction, NamesHaveNoPassword) {
  for (const char* unclear : {"postgresql://u:p@s3cret@127.0.0.1/x", "postgresql://u:pa@ss/wo#s3cret@h/x",
                              "postgresql://u:pa/s3cret@h/x", "postgres://u:pa#s3cret@h/x?sslmode=prefer"}) {
    try {
      (void)redacted(unclear);
      ADD_FAILURE() << unclear;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("s3cret"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("%40"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(redacted("postgresql://u:p%40s3cret@h/x?options=a@b"), "postgresql://u@h/x");
  EXPECT_EQ(redacted("postgresql://ada:s3cret@db.example:5433/shop"),
            "postgresql://ada@db.example:5433/shop");
  EXPECT_EQ(redacted("postgres://ada@db/shop?password=s3cret&sslpassword=s3cret"),
            "postgresql://ada@db/shop");
  EXPECT_EQ(redacted("postgresql:///shop?host=/run/pg&password=s3cret"), "postgresql:///shop?host=/run/pg");
  EXPECT_EQ(redacted("postgresql://a:s3cret@h1:1,h2:2/shop"), "postgresql://a@h1,h2:1,2/shop");
  EXPECT_EQ(redacted("postgresql://a:s3cret@h1,h2:2/shop"), "postgresql://a@h1,h2:,2/shop");
}

TEST(PostgresRedaction, MalformedUrlsAreNotRepeated) {
  for (const char* url : {"postgresql://ada:s3cret@[::1/shop", "postgresql://ada@db/shop?s3cret",
                          "postgresql://ada:s3cret%zz@db/x", "postgresql://ada:s3cret/@db/x"}) {
    try {
      (void)redacted(url);
      ADD_FAILURE() << url;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_EQ(std::string(error.what()).find("s3cret"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace postrider::postgres
