// SPDX-License-Identifier: Apache-2.0
// Entries of the Event Log API: what every database must do with them.
#include <thread>
#include <vector>

#include "storage/conformance/store_fixture.hpp"
#include "storage/entry_store.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EntryVerbs : public StoreConformance {
 protected:
  EntryStore& entries() { return storage().entry_store(); }

  /// Times are seconds after the clock's start.
  Entry entry(int second, const std::string& correlation = "c", const std::string& application = "a") {
    Entry made;
    made.application_id = application;
    made.correlation_id = correlation;
    made.process_name = "CreateBooking";
    made.process_status = "PROCESS_START";
    made.occurred_at = clock_.now() + std::chrono::seconds{second};
    return made;
  }
  Entry keyed(const std::string& key, const std::string& application = "a") {
    Entry made = entry(0, "c", application);
    made.idempotency_key = key;
    return made;
  }
  Entry saying(const std::string& details, int second = 0) {
    Entry made = entry(second);
    made.details = details;
    return made;
  }
  EntryId add(const Entry& one) { return entries().insert({&one, 1}).at(0).id; }

  /// Seconds of what a query finds, over all its pages.
  std::vector<int> seconds(EntryQuery query) {
    std::vector<int> found;
    for (;;) {
      const EntryPage page = entries().find(query);
      for (const StoredEntry& one : page.entries) {
        found.push_back(static_cast<int>((one.entry.occurred_at - clock_.now()) / 1s));
      }
      if (!page.more) return found;
      if (page.entries.empty()) {
        ADD_FAILURE() << "an empty page promises more";
        return found;
      }
      query.after = EntryPosition{page.entries.back().entry.occurred_at, page.entries.back().id};
    }
  }
  std::vector<int> search(std::string_view text) { return seconds({.words = search_words(text)}); }
  std::int64_t rows() { return sql("select count(*) from " + table("event_log_entries")).integer(0, 0); }
};
POSTRIDER_FOR_EACH_BACKEND(EntryVerbs);

TEST_P(EntryVerbs, AnEntryNeedsNoCorrelation) {
  const std::vector<Entry> two{entry(1, ""), entry(2, "c")};
  const EntryId id = entries().insert(two).at(0).id;
  EXPECT_EQ(entries().get(id).value().entry.correlation_id, "");
  EXPECT_THAT(seconds({}), ElementsAre(1, 2));
  EXPECT_THAT(seconds({.correlation_id = ""}), ElementsAre(1));
  EXPECT_THAT(seconds({.correlation_id = "c"}), ElementsAre(2));
  const EntryId alone = add(entry(3, ""));
  EXPECT_EQ(entries().get(alone).value().entry.correlation_id, "");
}

TEST_P(EntryVerbs, AnEntryComesBackAsItWas) {
  Entry all = entry(0);
  all.step = "Booked";
  all.details = "Zürich: \"quoted\",\nnew line, 100 % \\ 🎯";
  all.target_system = "PET_RESORT";
  all.originating_system = "WEB";
  all.user_id = "ada";
  all.idempotency_key = "key 1";
  all.extras = R"({"n":1.5,"list":[1,"é"]})";
  all.occurred_at = clock_.now() + 123456us;
  clock_.advance(5s);
  const EntryId id = add(all);
  const StoredEntry found = entries().get(id).value();
  EXPECT_EQ(found.id, id);
  for (const auto column :
       {&Entry::application_id, &Entry::correlation_id, &Entry::process_name, &Entry::process_status,
        &Entry::step, &Entry::details, &Entry::target_system, &Entry::originating_system, &Entry::user_id,
        &Entry::idempotency_key, &Entry::extras}) {
    EXPECT_EQ(found.entry.*column, all.*column);
  }
  EXPECT_EQ(found.entry.occurred_at, all.occurred_at) << "to the microsecond";
  EXPECT_EQ(found.received_at, clock_.now());
  EXPECT_FALSE(entries().get(EntryId{static_cast<std::int64_t>(id) + 1}).has_value());
}

TEST_P(EntryVerbs, WhatIsNotGivenIsNull) {
  add(entry(0));
  EXPECT_EQ(sql("select count(*) from " + table("event_log_entries") +
                " where step is null and details is null and target_system is null and originating_system is "
                "null and user_id is null and idempotency_key is null and extras is null")
                .integer(0, 0),
            1);
}

TEST_P(EntryVerbs, TheLongestFieldsAreTaken) {
  Entry longest = entry(0, std::string(EntryLimits::name, 'c'), std::string(EntryLimits::name, 'a'));
  std::string wide;
  for (std::size_t i = 0; i < EntryLimits::process; ++i) wide += "ü";  // characters count, not bytes
  longest.process_name = wide;
  longest.step = wide;
  longest.process_status.assign(EntryLimits::status, 'S');
  longest.target_system.assign(EntryLimits::name, 't');
  longest.originating_system.assign(EntryLimits::name, 'o');
  longest.user_id.assign(EntryLimits::name, 'u');
  longest.idempotency_key.assign(EntryLimits::name, 'k');
  longest.details.assign(EntryLimits::details_bytes, 'x');  // one word, longer than any index takes
  longest.extras = "{\"x\":\"" + std::string(EntryLimits::extras_bytes - 8, 'y') + "\"}";
  const StoredEntry found = entries().get(add(longest)).value();
  EXPECT_EQ(found.entry.details, longest.details);
  EXPECT_EQ(found.entry.extras, longest.extras);
  EXPECT_EQ(found.entry.step, wide);
}

TEST_P(EntryVerbs, ManyDifferentWordsAreTaken) {
  std::string words;
  for (int i = 0; words.size() + 8 < EntryLimits::details_bytes; ++i) words += std::to_string(i) + " ";
  add(saying(words, 1));
  EXPECT_THAT(search("4711"), ElementsAre(1));
}

TEST_P(EntryVerbs, IdsAreInTheOrderOfTheBatch) {
  std::vector<Entry> batch;
  for (int i = 0; i < 700; ++i) batch.push_back(i % 3 == 0 ? keyed("k" + std::to_string(i)) : entry(i));
  const std::vector<InsertedEntry> answers = entries().insert(batch);
  ASSERT_THAT(answers, SizeIs(700));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_FALSE(answers[i].duplicate);
    if (i > 0) {
      EXPECT_GT(answers[i].id, answers[i - 1].id);
    }
    EXPECT_EQ(entries().get(answers[i].id).value().entry.idempotency_key, batch[i].idempotency_key);
  }
  EXPECT_THAT(entries().insert({}), IsEmpty());
}

TEST_P(EntryVerbs, HazardL3ARepeatedKeyAnswersWithTheFirstId) {
  const EntryId first = add(keyed("k"));
  Entry changed = keyed("k");
  changed.details = "said otherwise the second time";
  const std::vector<Entry> again{entry(1), changed, entry(2), keyed("new"), keyed("new"), changed};
  const std::vector<InsertedEntry> answers = entries().insert(again);
  ASSERT_THAT(answers, SizeIs(6));
  EXPECT_FALSE(answers[0].duplicate);
  EXPECT_TRUE(answers[1].duplicate);
  EXPECT_EQ(answers[1].id, first);
  EXPECT_FALSE(answers[2].duplicate);
  EXPECT_FALSE(answers[3].duplicate);
  EXPECT_TRUE(answers[4].duplicate) << "twice in the same call";
  EXPECT_EQ(answers[4].id, answers[3].id);
  EXPECT_EQ(answers[5].id, first);
  EXPECT_EQ(rows(), 4);
  EXPECT_EQ(entries().get(first).value().entry.details, "") << "the first one stays as it was";
  EXPECT_EQ(entries().get(answers[2].id).value().entry.occurred_at, again[2].occurred_at);
}

TEST_P(EntryVerbs, KeysAreAnApplicationsOwnAndCaseAndSpacesCount) {
  const std::vector<Entry> batch{keyed("k", "a"), keyed("k", "b"), keyed("K", "a"), keyed("k ", "a")};
  for (const InsertedEntry& answer : entries().insert(batch)) EXPECT_FALSE(answer.duplicate);
  EXPECT_EQ(rows(), 4);
}

TEST_P(EntryVerbs, ManyRepeatsInOneBatchAreAllFound) {
  std::vector<Entry> batch;
  for (int i = 0; i < 600; ++i) batch.push_back(keyed("k" + std::to_string(i)));
  const std::vector<InsertedEntry> first = entries().insert(batch);
  const std::vector<InsertedEntry> second = entries().insert(batch);
  ASSERT_THAT(second, SizeIs(600));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    EXPECT_TRUE(second[i].duplicate);
    EXPECT_EQ(second[i].id, first[i].id);
  }
  EXPECT_EQ(rows(), 600);
}

TEST_P(EntryVerbs, TheSameKeyFromManyNodesAtOnceIsStoredOnce) {
  constexpr int nodes = 4;
  constexpr int rounds = 20;
  std::vector<std::vector<EntryId>> ids(nodes);
  {
    std::vector<std::jthread> threads;
    for (int node = 0; node < nodes; ++node) {
      threads.emplace_back([&, node] {
        const auto own = database().open_another();
        for (int round = 0; round < rounds; ++round) {
          // In the same order, as two senders of one application would.
          const std::vector<Entry> batch{keyed("r" + std::to_string(round)),
                                         keyed("s" + std::to_string(round))};
          for (const InsertedEntry& answer : own->entry_store().insert(batch)) {
            ids[static_cast<std::size_t>(node)].push_back(answer.id);
          }
        }
      });
    }
  }
  EXPECT_EQ(rows(), rounds * 2);
  for (const auto& of_node : ids) EXPECT_EQ(of_node, ids[0]) << "everybody was told the same ids";
}

TEST_P(EntryVerbs, ABatchIsStoredWholeOrNotAtAll) {
  std::vector<Entry> batch{entry(0), entry(1)};
  batch[1].extras = "no JSON";
  batch[1].application_id = "";  // stands for NULL, which the table refuses
  if (storage().kind() == BackendKind::sqlite) {
    sql("create trigger refuse before insert on " + table("event_log_entries") +
        " when new.application_id = '' begin select raise(abort, 'refused'); end");
  }
  EXPECT_THROW(entries().insert(batch), Error);
  EXPECT_EQ(rows(), 0);
}

TEST_P(EntryVerbs, FindsByCorrelationApplicationAndTime) {
  const std::vector<Entry> batch{entry(3, "c1", "a1"), entry(1, "c1", "a1"), entry(2, "c2", "a1"),
                                 entry(4, "c1", "a2"), entry(5, "C1", "a1")};
  (void)entries().insert(batch);
  const TimePoint start = clock_.now();
  EXPECT_THAT(seconds({}), ElementsAre(1, 2, 3, 4, 5)) << "by time, not by arrival";
  EXPECT_THAT(seconds({.newest_first = true}), ElementsAre(5, 4, 3, 2, 1));
  EXPECT_THAT(seconds({.correlation_id = "c1"}), ElementsAre(1, 3, 4)) << "case counts";
  EXPECT_THAT(seconds({.application_id = "a1"}), ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(seconds({.correlation_id = "c1", .application_id = "a1"}), ElementsAre(1, 3));
  EXPECT_THAT(seconds({.from = start + 2s, .until = start + 4s}), ElementsAre(2, 3))
      << "from is included, until is not";
  EXPECT_THAT(seconds({.application_id = "a1", .from = start + 2s, .newest_first = true}),
              ElementsAre(5, 3, 2));
  EXPECT_THAT(seconds({.correlation_id = "none"}), IsEmpty());
  EXPECT_THAT(seconds({.limit = 0}), IsEmpty());
}

TEST_P(EntryVerbs, PagesMissNothingAndRepeatNothing) {
  std::vector<Entry> batch;
  for (int i = 0; i < 250; ++i)
    batch.push_back(entry(i / 50, i % 2 == 0 ? "even" : "odd"));  // many at one time
  (void)entries().insert(batch);
  for (const bool newest_first : {false, true}) {
    for (const std::size_t limit : {1U, 7U, 125U, 249U, 250U, 1000U}) {
      std::vector<int> all = seconds({.newest_first = newest_first, .limit = limit});
      ASSERT_THAT(all, SizeIs(250)) << limit;
      if (newest_first) std::reverse(all.begin(), all.end());
      EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
      EXPECT_THAT(seconds({.correlation_id = "odd", .newest_first = newest_first, .limit = limit}),
                  SizeIs(125));
    }
  }
  EXPECT_FALSE(entries().find({.limit = 250}).more);
  EXPECT_TRUE(entries().find({.limit = 249}).more);
}

TEST_P(EntryVerbs, LargeEntriesMakeShortPagesWithoutHoles) {
  std::vector<Entry> batch;
  for (int i = 0; i < 150; ++i) batch.push_back(saying(std::string(60'000, 'x'), i));
  (void)entries().insert(batch);
  const EntryPage page = entries().find({.limit = 1000});
  EXPECT_TRUE(page.more) << "9 MB are more than one page";
  EXPECT_LT(page.entries.size(), 150U);
  const std::vector<int> all = seconds({.limit = 1000});
  ASSERT_THAT(all, SizeIs(150));
  for (int i = 0; i < 150; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
}

TEST_P(EntryVerbs, SearchesWholeWordsInNameStepAndDetails) {
  Entry first = saying("Booking BK-20260601-001 created for PET_RESORT, about noon", 1);
  first.step = "BookingCreated";
  add(first);
  add(saying("nothing to see", 2));
  EXPECT_THAT(search("bk-20260601-001"), ElementsAre(1)) << "punctuation parts words";
  EXPECT_THAT(search("20260601"), ElementsAre(1));
  EXPECT_THAT(search("RESORT"), ElementsAre(1)) << "in upper or lower case";
  EXPECT_THAT(search("bookingcreated"), ElementsAre(1)) << "the step";
  EXPECT_THAT(search("createbooking"), ElementsAre(1, 2)) << "the process's name";
  EXPECT_THAT(search("about"), ElementsAre(1)) << "no word is too common";
  EXPECT_THAT(search("created noon"), ElementsAre(1));
  EXPECT_THAT(search("created nothing"), IsEmpty()) << "each of the words";
  EXPECT_THAT(search("resor"), IsEmpty()) << "whole words";
  EXPECT_THAT(search("created bk"), ElementsAre(1)) << "a short word narrows the search";
  EXPECT_THAT(search("created xy"), IsEmpty());
  EXPECT_THAT(search("bok"), IsEmpty());
}

TEST_P(EntryVerbs, SearchTakesOtherAlphabetsAndNoOperators) {
  add(saying("Überweisung für Müller", 1));
  add(saying("платёж принят", 2));
  add(saying("not near and or the rest", 3));
  EXPECT_THAT(search("Überweisung"), ElementsAre(1));
  EXPECT_THAT(search("Überweisung Müller für"), ElementsAre(1))
      << "beyond ASCII, case is the database's matter";
  EXPECT_THAT(search("принят"), ElementsAre(2));
  EXPECT_THAT(search("rest NOT the"), ElementsAre(3)) << "words, not operators";
  EXPECT_THAT(search("near(rest, 'or') \"and* -the"), ElementsAre(3));
}

TEST_P(EntryVerbs, SearchGoesWithTheOtherFiltersAndPages) {
  std::vector<Entry> batch;
  for (int i = 0; i < 30; ++i) {
    Entry one = saying(i % 3 == 0 ? "payment refused" : "payment taken", i);
    one.correlation_id = i % 2 == 0 ? "even" : "odd";
    batch.push_back(one);
  }
  (void)entries().insert(batch);
  const TimePoint start = clock_.now();
  EntryQuery query{.words = {"refused"}, .limit = 2};
  EXPECT_THAT(seconds(query), ElementsAre(0, 3, 6, 9, 12, 15, 18, 21, 24, 27));
  query.correlation_id = "odd";
  EXPECT_THAT(seconds(query), ElementsAre(3, 9, 15, 21, 27));
  query.newest_first = true;
  query.until = start + 21s;
  EXPECT_THAT(seconds(query), ElementsAre(15, 9, 3));
}

TEST_P(EntryVerbs, ARemovedEntryIsNotFoundAnyMoreAndItsKeyIsFree) {
  Entry one = saying("vanishing act", 1);
  one.idempotency_key = "k";
  const EntryId first = add(one);
  sql("delete from " + table("event_log_entries"));
  EXPECT_THAT(search("vanishing"), IsEmpty());
  const EntryId second = add(one);
  EXPECT_GT(second, first) << "ids are never used again";
  EXPECT_THAT(search("vanishing"), ElementsAre(1));
}

TEST_P(EntryVerbs, OldEntriesAreRemovedInBatchesOldestFirstWithTheirWordsAndKeys) {
  for (const int second : {7, 3, 9, 1, 5}) {
    Entry one = saying("vanishing number" + std::to_string(second), second);
    one.idempotency_key = "k" + std::to_string(second);
    add(one);
  }
  const TimePoint time = clock_.now() + 7s;
  EXPECT_EQ(entries().count_before(time), 3) << "the time itself is not before it";
  EXPECT_EQ(entries().purge_before(time, 2), 2);
  EXPECT_THAT(seconds({}), ElementsAre(5, 7, 9));
  EXPECT_THAT(search("vanishing"), ElementsAre(5, 7, 9));
  EXPECT_THAT(search("number1"), IsEmpty());
  EXPECT_EQ(entries().purge_before(time, 2), 1);
  EXPECT_EQ(entries().purge_before(time, 2), 0);
  EXPECT_EQ(entries().count_before(time), 0);
  EXPECT_THAT(search("vanishing"), ElementsAre(7, 9));
  Entry again = saying("vanishing again", 1);
  again.idempotency_key = "k1";
  EXPECT_FALSE(entries().insert({&again, 1}).at(0).duplicate);
  EXPECT_EQ(entries().purge_before(clock_.now() - std::chrono::hours{24 * 365'000}, 10), 0);
  if (backend() == "sqlite") {  // does the index of words know exactly the rows that are left?
    const std::string words = table("event_log_words");
    sql("insert into " + words + " (" + words + ", rank) values ('integrity-check', 1)");
  }
}

TEST_P(EntryVerbs, TwoNodesRemoveEachEntryOnce) {
  std::vector<Entry> many;
  for (int i = 0; i < 400; ++i) many.push_back(entry(i));
  entries().insert(many);
  const TimePoint time = clock_.now() + 300s;
  std::atomic<std::int64_t> removed{0};
  {
    std::vector<std::jthread> nodes;
    for (int node = 0; node < 2; ++node) {
      nodes.emplace_back([&] {
        while (entries().count_before(time) > 0) {
          try {
            removed += entries().purge_before(time, 30);
          } catch (const Error& error) {
            EXPECT_TRUE(error.retryable()) << error.what();
          }
        }
      });
    }
  }
  EXPECT_EQ(removed, 300);
  EXPECT_EQ(rows(), 100);
}

TEST_P(EntryVerbs, TimesFromTheYear1000To9999AreKept) {
  Entry old = entry(0);
  old.occurred_at = TimePoint(std::chrono::sys_days{std::chrono::year{1000} / 1 / 1});
  Entry late = entry(0);
  late.occurred_at = TimePoint(std::chrono::sys_days{std::chrono::year{9999} / 12 / 31}) + 86'399'999'999us;
  EXPECT_EQ(entries().get(add(old)).value().entry.occurred_at, old.occurred_at);
  EXPECT_EQ(entries().get(add(late)).value().entry.occurred_at, late.occurred_at);
  EXPECT_EQ(entries().find({.until = old.occurred_at + 1us}).entries.size(), 1U);
  Entry next = late;
  next.occurred_at -= 1us;
  add(next);
  const EntryPage page = entries().find({.from = next.occurred_at, .limit = 1});
  ASSERT_EQ(page.entries.size(), 1U);
  EXPECT_EQ(page.entries[0].entry.occurred_at, next.occurred_at);
  EXPECT_EQ(seconds({.from = next.occurred_at, .limit = 1}).size(), 2U) << "pages go on exactly there";
}

}  // namespace
}  // namespace postrider::conformance
