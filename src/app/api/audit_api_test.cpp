// SPDX-License-Identifier: Apache-2.0
#include "app/api/audit_api.hpp"

#include "app/api/api_fixture.hpp"
#include "storage/audit_store.hpp"

namespace postrider::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AuditApiTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) use(audit_routes());
  }
  LogCallback log() {
    return [this](LogLevel level, std::string_view line) {
      (level >= LogLevel::error ? errors_ : log_).emplace_back(line);
    };
  }
  std::vector<std::string> errors_;
};
POSTRIDER_FOR_EACH_BACKEND(AuditApiTest);

TEST_P(AuditApiTest, WhatIsWrittenCanBeRead) {
  const auto write = audit_writer([this] { return &storage(); }, log());
  for (int i = 1; i <= 5; ++i)
    write({.who = i % 2 == 0 ? "bob" : "ada", .what = "pause " + std::to_string(i)});
  EXPECT_THAT(pages("/api/audit?limit=2", "entries", "what"),
              ElementsAre("pause 5", "pause 4", "pause 3", "pause 2", "pause 1"));
  EXPECT_THAT(pages("/api/audit?who=bob&limit=1", "entries", "what"), ElementsAre("pause 4", "pause 2"));
  EXPECT_THAT(pages("/api/audit?from=2100-01-01T00:00:00Z", "entries", "what"), IsEmpty());
  EXPECT_THAT(log_, ::testing::Contains("postrider: audit: ada: pause 1"));
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_THAT(get_problem("/api/audit?user=bob"), HasSubstr("400"));
}

TEST_P(AuditApiTest, AChangeThatCannotBeWrittenDownIsToldLoudlyAndThrowsNothing) {
  test::TestDatabase without_tables(backend(), {.migrate = false});
  const auto write = audit_writer([&] { return &without_tables.storage(); }, log());
  write({.who = "ada", .what = "purge"});
  const auto without = audit_writer([] { return nullptr; }, log());
  without({.who = "bob", .what = "pause"});
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("the audit table does not have what this line has: ada: purge"),
                                   HasSubstr("bob: pause")));
}

}  // namespace
}  // namespace postrider::api
