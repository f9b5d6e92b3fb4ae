// SPDX-License-Identifier: Apache-2.0
// postrider status: what it says of trouble.
#include <gmock/gmock.h>

#include "app/cli/cli_fixture.hpp"
#include "storage/progress_store.hpp"

namespace postrider::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class StatusTest : public CliTest {};
POSTRIDER_FOR_EACH_BACKEND(StatusTest);

TEST_P(StatusTest, WithoutTablesFails) {
  EXPECT_EQ(run({"migrate", "--to", "0", "--yes"}).code, 0);
  const Said table = run({"status"});
  EXPECT_EQ(table.code, 1);
  EXPECT_THAT(table.out, HasSubstr("postrider migrate"));
  EXPECT_THAT(table.err, HasSubstr("cannot say how everything stands: the tables are not there. Hint: "
                                   "postrider migrate"));
  const Said as_json = run({"status", "-o", "json"});
  EXPECT_EQ(as_json.code, 1);
  EXPECT_EQ(as_json.json().at("schemaVersion"), 0);
  const int newest = storage().migrate({.dry_run = true}).to;
  EXPECT_EQ(run({"migrate", "--to", std::to_string(newest - 1)}).code, 0);
  EXPECT_THAT(run({"status"}).err, HasSubstr("the tables have version " + std::to_string(newest - 1)));
}

TEST_P(StatusTest, NamesAllThatIsStuckTheWorstFirst) {
  std::vector<NewPair> pairs;
  for (const char* const publisher : {"p1", "p2", "p3", "p4", "p5", "p6", "p7"}) {
    pairs.push_back({{"t", publisher}, Position{0}});
  }
  storage().progress_store().add(pairs);
  sql("update " + table("outbox_topic_progress") + " set status = 'FAILED', last_error = 'refused' where " +
      "publisher in ('p1', 'p2')");
  sql("update " + table("outbox_topic_progress") + " set status = 'PAUSED' where publisher = 'p3'");
  EXPECT_EQ(run({"store", "append", "T"}).code, 0);
  std::string out = run({"status"}).out;
  const auto place = [&](const std::string& text) {
    const std::size_t at = out.find(text);
    EXPECT_NE(at, std::string::npos) << text << "\n" << out;
    return at;
  };
  EXPECT_LT(place("stuck        nobody leads: 4 pairs have events to publish. Hint: "),
            place("\n             pair t/p1 has stopped at an event that was refused"));
  EXPECT_LT(place("             pair t/p2 has stopped"),
            place("             pair t/p3 is paused, 1 event behind"));
  EXPECT_THAT(out, Not(HasSubstr("more: postrider status")));
  sql("update " + table("outbox_topic_progress") + " set status = 'FAILED', last_error = 'refused' where " +
      "publisher = 'p4'");
  sql("update " + table("outbox_topic_progress") + " set status = 'PAUSED' where publisher in ('p5', 'p6', " +
      "'p7')");
  out = run({"status"}).out;
  EXPECT_LT(place("pair t/p4 has stopped"), place("pair t/p3 is paused"));
  EXPECT_THAT(out, AllOf(HasSubstr("pair t/p6 is paused"), Not(HasSubstr("pair t/p7 is paused")),
                         HasSubstr("\n             … and 1 more: postrider status -o json\n")));
  EXPECT_EQ(json({"status"}).at("findings").as_array().size(), 7U);
}

}  // namespace
}  // namespace postrider::cli
