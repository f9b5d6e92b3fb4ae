// SPDX-License-Identifier: Apache-2.0
// However many events there are, an append and a page read a few rows only.
#include "backends/mariadb/plan_fixture.hpp"
#include "storage/stream_store.hpp"

namespace postrider::mariadb {
namespace {

class MariadbStreamPlanTest : public MariadbPlanFixture {};

TEST_F(MariadbStreamPlanTest, AppendsAndPagesReadAFewRowsOnly) {
  storage();
  const std::unique_ptr<Storage> alone = open_storage({.pool_size = 1});
  StreamStore& store = alone->stream_store();
  std::vector<AppendEvent> events;
  for (int i = 0; i < 5'000; ++i) {
    AppendEventBuilder builder = AppendEvent::builder(i % 2 == 0 ? "Even" : "Odd");
    builder.tag("hot", "1").tag("n", std::to_string(i / 5));
    if (i % 3 == 0) builder.tag("third", "1");
    events.push_back(builder.build());
  }
  const AppendRequest fill{.events = events};
  (void)store.append({&fill, 1});

  const std::vector<AppendEvent> one{AppendEvent::builder("New")};
  const auto append = [&](const Query& query) {
    const AppendCondition condition{.query = query};
    const AppendRequest request{.events = one, .condition = &condition};
    return rows_read(*alone, [&] { (void)store.append({&request, 1}); });
  };
  // Nothing of this is there, and nothing of the 5,000 events that come near is looked at.
  EXPECT_LT(append(Query::of({{.types = {"Nobody"}, .tags = {{"hot", "1"}}}})), 30);
  EXPECT_LT(append(Query::tag("hot", "2")), 30);
  EXPECT_LT(append(Query::tag("hot", "1")), 30) << "a conflict: the newest is the first";
  EXPECT_LT(append(Query::tags({{"hot", "1"}, {"n", "no such"}})), 250) << "samples of both";
  const Query rare = Query::tags({{"hot", "1"}, {"n", "77"}, {"third", "1"}});
  EXPECT_LT(rows_read(*alone, [&] { EXPECT_GE(store.read({.query = &rare}).events.size(), 1U); }), 500);
  const Query hot = Query::tag("hot", "1");
  EXPECT_LT(
      rows_read(*alone, [&] { EXPECT_EQ(store.read({.query = &hot, .limit = 20}).events.size(), 20U); }),
      150);
  EXPECT_LT(
      rows_read(*alone, [&] { EXPECT_EQ(store.read({.limit = 20, .backwards = true}).events.size(), 20U); }),
      100);
}

}  // namespace
}  // namespace postrider::mariadb
