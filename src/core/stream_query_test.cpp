// SPDX-License-Identifier: Apache-2.0
#include "postrider/stream_query.hpp"

#include <gtest/gtest.h>

#include "postrider/error.hpp"
#include "support/refusal.hpp"

namespace postrider {
namespace {

using test::refusal;

using Items = std::vector<QueryItem>;

TEST(StreamQuery, AnItemWantsOneOfItsTypesAndAllOfItsTags) {
  const Query query = Query::of({QueryItem{.types = {"A", "B"}, .tags = {{"x", "1"}, {"y", "2"}}}});
  EXPECT_TRUE(query.matches("A", {{"x", "1"}, {"y", "2"}}));
  EXPECT_TRUE(query.matches("B", {{"w", "0"}, {"x", "1"}, {"y", "2"}, {"z", "3"}}));
  EXPECT_FALSE(query.matches("C", {{"x", "1"}, {"y", "2"}}));
  EXPECT_FALSE(query.matches("A", {{"x", "1"}}));
  EXPECT_FALSE(query.matches("A", {{"x", "1"}, {"y", "3"}}));
  EXPECT_FALSE(query.matches("A", {}));
}

TEST(StreamQuery, HazardS4ItemsStandForThemselves) {
  const Query query = Query::of(
      {QueryItem{.types = {"A"}, .tags = {{"x", "1"}}}, QueryItem{.types = {"B"}, .tags = {{"y", "2"}}}});
  EXPECT_TRUE(query.matches("A", {{"x", "1"}}));
  EXPECT_TRUE(query.matches("B", {{"y", "2"}}));
  EXPECT_FALSE(query.matches("A", {{"y", "2"}}));
  EXPECT_FALSE(query.matches("B", {{"x", "1"}}));
}

TEST(StreamQuery, HazardS5NoTypesOrNoTagsMeansAny) {
  EXPECT_TRUE(Query::tag("x", "1").matches("Whatever", {{"x", "1"}}));
  EXPECT_FALSE(Query::tag("x", "1").matches("Whatever", {{"x", "2"}}));
  EXPECT_TRUE(Query::type("A").matches("A", {}));
  EXPECT_TRUE(Query::type("A").matches("A", {{"x", "1"}}));
  EXPECT_FALSE(Query::type("A").matches("B", {{"x", "1"}}));
  EXPECT_TRUE(Query::all().matches("A", {}));
  EXPECT_TRUE(Query::types({"A", "B"}).matches("B", {}));
  EXPECT_FALSE(Query::tags({{"x", "1"}, {"y", "2"}}).matches("B", {{"y", "2"}}));
}

TEST(StreamQuery, AnEmptyListIsRefused) {
  EXPECT_NE(refusal([] { (void)Query::of({}); }).find("no items"), std::string::npos);
  EXPECT_NE(refusal([] { (void)Query::types({}); }).find("no types"), std::string::npos);
  EXPECT_NE(refusal([] { (void)Query::tags({}); }).find("no tags"), std::string::npos);
  EXPECT_NE(refusal([] { (void)Query::tags({}); }).find("Query::all()"), std::string::npos);
}

TEST(StreamQuery, AnItemThatWantsNothingMakesItAll) {
  EXPECT_TRUE(Query::of({QueryItem{.types = {"A"}}, QueryItem{}}).is_all());
  EXPECT_TRUE((Query::type("A") | Query::all()).is_all());
  EXPECT_TRUE((Query::all() | Query::type("A")).is_all());
}

TEST(StreamQuery, TheSameMeaningIsTheSameQuery) {
  EXPECT_EQ(Query::types({"B", "A", "B"}), Query::types({"A", "B"}));
  EXPECT_EQ(Query::tags({{"y", "2"}, {"x", "1"}, {"y", "2"}}), Query::tags({{"x", "1"}, {"y", "2"}}));
  EXPECT_EQ((Query::type("A") | Query::type("A")).items().size(), 1U);
  const Query either = Query::type("A") | Query::tag("x", "1");
  EXPECT_EQ(either.items(), (Items{{.types = {"A"}}, {.tags = {{"x", "1"}}}}));
}

TEST(StreamQuery, MatchesAStoredEvent) {
  const StoredEvent event({.position = Position{7}, .event = Event::json("A", "{}"), .tags = {{"x", "1"}}});
  EXPECT_TRUE(Query::tag("x", "1").matches(event));
  EXPECT_FALSE(Query::tag("x", "2").matches(event));
}

TEST(StreamQuery, RefusesWhatIsOutOfBounds) {
  EXPECT_NE(refusal([] { (void)Query::of({}); }).find("Query::all()"), std::string::npos);
  EXPECT_NE(refusal([] { (void)Query::type(""); }).find("type is empty"), std::string::npos);
  EXPECT_NE(refusal([] { (void)Query::tag("", "1"); }).find("key is empty"), std::string::npos);
  Items items;
  for (std::size_t i = 0; i < Query::max_items; ++i) items.push_back({.types = {std::to_string(i)}});
  EXPECT_EQ(Query::of(items).items().size(), Query::max_items);
  items.push_back({.types = {"one more"}});
  EXPECT_NE(refusal([&] { (void)Query::of(items); }).find("257 items, at most 256"), std::string::npos);
  Items wide;
  for (int i = 0; i < 170; ++i) {
    QueryItem item{.types = {"t" + std::to_string(i)}};
    for (std::size_t k = 0; k < Query::max_tags; ++k) item.tags.push_back({"k", std::to_string(k)});
    wide.push_back(std::move(item));
  }
  EXPECT_NE(refusal([&] { (void)Query::of(wide); }).find("10200 combinations of types and tags"),
            std::string::npos);
  Tags tags;
  for (std::size_t i = 0; i <= Query::max_tags; ++i) tags.push_back({std::to_string(i), ""});
  EXPECT_NE(refusal([&] { (void)Query::tags(tags); }).find("61 tags in one item"), std::string::npos);
}

}  // namespace
}  // namespace postrider
