// SPDX-License-Identifier: Apache-2.0
#include "storage/audit_store.hpp"

#include "core/utf8.hpp"
#include "storage/conformance/store_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AuditVerbs : public StoreConformance {
 protected:
  AuditStore& store() { return storage().audit_store(); }
  void note(const std::string& who, const std::string& what) {
    const AuditEntry entry{.who = who, .what = what};
    store().append({&entry, 1});
  }
  std::vector<std::string> list(const AuditQuery& query = {}) {
    std::vector<std::string> all;
    for (const AuditEntry& one : store().list(query)) all.push_back(one.what);
    return all;
  }
};
POSTRIDER_FOR_EACH_BACKEND(AuditVerbs);

TEST_P(AuditVerbs, EntriesComeBackNewestFirst) {
  EXPECT_THAT(list(), IsEmpty());
  note("ada", "pause a/b");
  clock_.advance(1s);
  const std::vector<AuditEntry> two{{.who = "bob", .what = "resume a/b"}, {.who = "bob", .what = "purge"}};
  store().append(two);
  store().append({});
  EXPECT_THAT(list(), ElementsAre("purge", "resume a/b", "pause a/b"));
  const AuditEntry first = store().list({}).back();
  EXPECT_EQ(first.who, "ada");
  EXPECT_EQ(first.at, clock_.now() - 1s);
}

TEST_P(AuditVerbs, PagesGoOnBehindTheLastOne) {
  for (int i = 1; i <= 5; ++i) note("ada", std::to_string(i));
  const std::vector<AuditEntry> first = store().list({.limit = 2});
  ASSERT_EQ(first.size(), 2U);
  note("ada", "6");
  EXPECT_THAT(list({.before = first.back().id, .limit = 2}), ElementsAre("3", "2"))
      << "whatever was added meanwhile";
}

TEST_P(AuditVerbs, FiltersByWhoAndWhen) {
  const TimePoint start = clock_.now();
  note("ada", "1");
  clock_.advance(10s);
  note("bob", "2");
  EXPECT_THAT(list({.who = "ada"}), ElementsAre("1"));
  EXPECT_THAT(list({.who = "Ada"}), IsEmpty());
  EXPECT_THAT(list({.from = start + 10s}), ElementsAre("2"));
  EXPECT_THAT(list({.until = start + 10s}), ElementsAre("1"));
}

TEST_P(AuditVerbs, TheEntryOfAChangeThatGoesOnSaysHowFarItHasCome) {
  note("ada", "replay 500");
  note("ada", "replay 500");
  note("bob", "replay 500");
  clock_.advance(1s);
  EXPECT_TRUE(store().extend("ada", "replay 500", "replay 1000"));
  EXPECT_THAT(list(), ElementsAre("replay 500", "replay 1000", "replay 500")) << "the newest of hers";
  EXPECT_EQ(store().list({}).at(1).at, clock_.now() - 1s) << "it began then";
  EXPECT_FALSE(store().extend("ada", "replay 501", "replay 1000"));
  EXPECT_FALSE(store().extend("eve", "replay 500", "nothing"));
  EXPECT_EQ(list().size(), 3U);
  std::string umlauts;
  for (int i = 0; i < 3000; ++i) umlauts += "ü";
  note("cleo\xff", "1 " + umlauts);
  EXPECT_TRUE(store().extend("cleo\xff", "1 " + umlauts, "2 " + umlauts)) << "cut as it was";
  EXPECT_EQ(utf8_length(list().front()), AuditEntry::what_chars);
  EXPECT_EQ(list().front().substr(0, 2), "2 ");
}

TEST_P(AuditVerbs, StrangeTextsAreWrittenDownAllTheSame) {
  std::string umlauts;
  for (int i = 0; i < 3000; ++i) umlauts += "ü";
  note(umlauts, umlauts);
  note("a\xffz", "x\0y");
  const std::vector<AuditEntry> all = store().list({});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(utf8_length(all[1].who), AuditEntry::who_chars);
  EXPECT_EQ(utf8_length(all[1].what), AuditEntry::what_chars);
  EXPECT_EQ(all[0].who, "a\xEF\xBF\xBDz");
  EXPECT_EQ(all[0].what, "x");
}

}  // namespace
}  // namespace postrider::conformance
