// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/error.hpp"
#include "postrider/mariadb.hpp"

namespace postrider::mariadb {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MariadbUrl, ReadsEveryPart) {
  const ConnectSettings s = parse_url(
      "mariadb://ad%40min:p%3A%2F%3F%23%25w@db.example:3307/"
      "shop?read_timeout=9&write_timeout=8&ssl_mode=verify&ssl_ca=%2Fca.pem");
  EXPECT_EQ(s.user, "ad@min");
  EXPECT_EQ(s.password, "p:/?#%w");
  EXPECT_EQ(s.host, "db.example");
  EXPECT_EQ(s.port, 3307U);
  EXPECT_EQ(s.database, "shop");
  EXPECT_EQ(s.read_timeout, std::chrono::seconds{9});
  EXPECT_EQ(s.write_timeout, std::chrono::seconds{8});
  EXPECT_EQ(s.ssl, SslMode::verify);
  EXPECT_EQ(s.ssl_ca, "/ca.pem");
}

TEST(MariadbUrl, FillsInWhatIsLeftOut) {
  const ConnectSettings s = parse_url("mysql:///shop");
  EXPECT_EQ(s.host, "127.0.0.1");
  EXPECT_EQ(s.port, 3306U);
  EXPECT_EQ(s.user, "");
  EXPECT_EQ(parse_url("mariadb://[::1]:3307/shop").host, "::1");
  EXPECT_EQ(parse_url("mariadb://u@/shop?socket=/run/mysqld.sock").socket, "/run/mysqld.sock");
}

TEST(MariadbUrl, NamesWithoutThePassword) {
  EXPECT_EQ(parse_url("mysql://u:secret@db:3307/shop").name(), "mariadb://u@db:3307/shop");
  EXPECT_EQ(parse_url("mariadb://u:secret@[::1]/shop").name(), "mariadb://u@[::1]:3306/shop");
  EXPECT_THAT(parse_url("mariadb://u:secret@/shop?socket=/tmp/s").name(), Not(HasSubstr("secret")));
  StorageOptions options;
  EXPECT_EQ(driver().open("mariadb://u:secret@db/shop", options)->name(), "mariadb://u@db:3306/shop");
}

TEST(MariadbUrl, RefusesWhatItDoesNotUnderstandAndKeepsThePasswordToItself) {
  struct Case {
    const char* url;
    const char* part;
  };
  const Case cases[] = {
      {"mariadb://u:secret@db", "one database"},
      {"mariadb://u:secret@db/a/b", "one database"},
      {"mariadb://u:secret@db/shop?tiemout=1", "'tiemout'"},
      {"mariadb://u:secret@db/shop?read_timeout=soon", "'read_timeout'"},
      {"mariadb://u:secret@db/shop?ssl_mode=maybe", "'ssl_mode'"},
      {"mariadb://u:secret@db:99999/shop", "the port must be a number from 1 to 65535"},
      {"mariadb://u:secret@db:0/shop", "the port must be a number from 1 to 65535"},
      {"mariadb://u@db:port/shop", "the port must be a number from 1 to 65535"},
      {"mariadb://u:secret@db:33o6/shop", "the port must be a number from 1 to 65535"},
      {"mariadb://u:secret@[::1]:port/shop", "the port must be a number from 1 to 65535"},
      {"mariadb://u:secret@[::1/shop", "no URL"},
      {"mariadb://u:secr/et@db/shop", "percent-encoded"},
      {"mariadb://u:secret@db/shop#x", "'#'"},
      {"mariadb://u:secr et@db/shop", "no URL"},
      {"mariadb://u:secret%@db/shop", "no URL"},
      {"mariadb://u:secret%00@db/shop", "NUL"},
      {"mariadb:shop", "slashes"},
      {"postgresql://u:secret@db/shop", "mariadb://"},
  };
  for (const Case& c : cases) {
    try {
      (void)parse_url(c.url);
      ADD_FAILURE() << c.url;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << c.url;
      EXPECT_THAT(error.what(), HasSubstr(c.part)) << c.url;
      EXPECT_THAT(error.what(), Not(HasSubstr("secr"))) << c.url;
    }
  }
}

TEST(MariadbUrl, RefusesOptionsOutOfBounds) {
  const auto refusal = [](const StorageOptions& options) -> std::string {
    try {
      (void)driver().open("mariadb://u@db/shop", options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  StorageOptions no_pool;
  no_pool.pool_size = 0;
  EXPECT_THAT(refusal(no_pool), HasSubstr("pool_size"));
  StorageOptions long_prefix;
  long_prefix.schema = Identifier(std::string(47, 'a'));
  EXPECT_THAT(refusal(long_prefix), HasSubstr("schema"));
}

}  // namespace
}  // namespace postrider::mariadb
