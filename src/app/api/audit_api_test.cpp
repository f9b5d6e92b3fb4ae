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

TEST_P(AuditApiTest, PiecesOfAChangeAreOneEntry) {
  const auto write = audit_writer([this] { return &storage(); }, log());
  const auto replay = [](const std::string& who, const std::string& action, std::int64_t events,
                         const std::string& of = "dead letters, {}") {
    const AuditPiece piece{.action = action, .verb = "replay", .events = events, .of = of};
    return AuditRecord{.who = who, .what = piece.text(events), .piece = piece};
  };
  for (const std::int64_t events : {500, 500, 200}) write(replay("ada", "a", events));
  EXPECT_THAT(pages("/api/audit", "entries", "what"), ElementsAre("replay 1200 dead letters, {}"));
  EXPECT_THAT(log_, ElementsAre("postrider: audit: ada: replay 500 dead letters, {}",
                                "postrider: audit: ada: replay 1000 dead letters, {}",
                                "postrider: audit: ada: replay 1200 dead letters, {}"));
  write(replay("bob", "a", 7));
  write({.who = "ada", .what = "pause x"});
  write(replay("ada", "b", 3));
  write(replay("ada", "a", 1, "dead letters, {\"type\":\"T\"}"));
  write(replay("ada", "a", 1));
  EXPECT_THAT(pages("/api/audit", "entries", "what"),
              ElementsAre("replay 1 dead letters, {\"type\":\"T\"}", "replay 3 dead letters, {}", "pause x",
                          "replay 7 dead letters, {}", "replay 1201 dead letters, {}"))
      << "of another person, another action, or with another filter";
  const auto another_node = audit_writer([this] { return &storage(); }, log());
  another_node(replay("ada", "a", 2));
  EXPECT_EQ(pages("/api/audit", "entries", "what").front(), "replay 2 dead letters, {}");
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_P(AuditApiTest, APieceThatCouldNotBeWrittenDownIsInTheNextEntry) {
  Storage* there = &storage();
  const auto write = audit_writer([&] { return there; }, log());
  const AuditPiece piece{.action = "a", .verb = "replay", .events = 10, .of = "dead letters"};
  const AuditRecord record{.who = "ada", .what = piece.text(10), .piece = piece};
  for (Storage* const now : {there, static_cast<Storage*>(nullptr), there}) {
    there = now;
    write(record);
  }
  EXPECT_THAT(pages("/api/audit", "entries", "what"), ElementsAre("replay 30 dead letters"));
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("does not have what this line has: ada: replay 20 dead")));
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
