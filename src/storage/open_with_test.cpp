// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "postrider/error.hpp"
#include "postrider/storage.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

StorageDriver fake_driver() {
  static constexpr std::array<std::string_view, 2> schemes{"fake", "phony"};
  return {schemes, [](std::string_view url, const StorageOptions&) -> std::unique_ptr<Storage> {
            throw Error(ErrorCode::closed, "opened " + std::string(url));
          }};
}

Error error_of(std::string_view url, const StorageOptions& options = {}) {
  const std::array drivers{fake_driver()};
  try {
    (void)open_with(drivers, url, options);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::database, "nothing was thrown");
}

TEST(OpenWith, TheSchemeChoosesTheDriver) {
  EXPECT_THAT(error_of("fake:x").what(), HasSubstr("opened fake:x"));
  EXPECT_THAT(error_of("phony://h").what(), HasSubstr("opened phony://h"));
}

TEST(OpenWith, AnUnknownSchemeListsWhatThereIs) {
  const Error error = error_of("oracle://scott:tiger@host/db");
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("'oracle:'"));
  EXPECT_THAT(error.what(), HasSubstr("fake:, phony:"));
  EXPECT_THAT(error.what(), Not(HasSubstr("tiger"))) << "no passwords in messages";
}

TEST(OpenWith, AMissingComponentIsNamed) {
  EXPECT_THAT(error_of("postgres://h/db").what(), HasSubstr("Hint: link postrider::postgres"));
  EXPECT_THAT(error_of("postgresql://h/db").what(), HasSubstr("Hint: link postrider::postgres"));
  EXPECT_THAT(error_of("mysql://h/db").what(), HasSubstr("Hint: link postrider::mariadb"));
  EXPECT_EQ(error_of("mariadb://h/db").code(), ErrorCode::unsupported);
}

TEST(OpenWith, AUrlWithoutSchemeIsRefused) {
  for (const char* url : {"", "shop.db", ":memory:"}) {
    EXPECT_EQ(error_of(url).code(), ErrorCode::invalid_argument) << url;
    EXPECT_THAT(error_of(url).what(), HasSubstr("sqlite:shop.db"));
  }
}

TEST(OpenWith, OptionsOutOfBoundsAreNamedWithTheirValue) {
  EXPECT_STREQ(error_of("fake:x", {.pool_size = 0}).what(),
               "postrider: cannot use StorageOptions::pool_size = 0: it must be between 1 and 1000");
  EXPECT_THAT(error_of("fake:x", {.pool_size = 1001}).what(), HasSubstr("pool_size = 1001"));
  EXPECT_STREQ(
      error_of("fake:x", {.acquire_timeout = -1us}).what(),
      "postrider: cannot use StorageOptions::acquire_timeout = -1 us: it must be between 0 s and 1 day");
  EXPECT_THAT(error_of("fake:x", {.connect_timeout = 48h}).what(), HasSubstr("connect_timeout = 2 days"));
  EXPECT_THAT(error_of("fake:x", {.sqlite_busy_timeout = 25h}).what(),
              HasSubstr("sqlite_busy_timeout = 90000 s"));
}

TEST(BackendKindNames, AreThoseOfTheComponents) {
  EXPECT_EQ(to_string(BackendKind::sqlite), "sqlite");
  EXPECT_EQ(to_string(BackendKind::postgres), "postgres");
  EXPECT_EQ(to_string(BackendKind::mariadb), "mariadb");
}

}  // namespace
}  // namespace postrider
