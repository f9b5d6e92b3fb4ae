// SPDX-License-Identifier: Apache-2.0
// The examples of the DCB specification hold what they promise, also when many want the same at once.
#include <atomic>
#include <set>

#include "dcb/dcb.hpp"
#include "integration/stream_fixture.hpp"

namespace postrider {
namespace {

class DcbExamplesTest : public StreamTest {
 protected:
  template <class Action>
  static std::string refused(Action action) {
    try {
      action();
    } catch (const dcb::Refused& why) {
      return why.what();
    }
    return "allowed";
  }
  [[nodiscard]] std::function<TimePoint()> now() {
    return [this] { return clock_.now(); };
  }
  ManualClock clock_;
};
POSTRIDER_FOR_EACH_BACKEND(DcbExamplesTest);

TEST_P(DcbExamplesTest, CourseSubscriptions) {
  dcb::Courses courses(store());
  EXPECT_EQ(refused([&] { courses.subscribe("ada", "c1"); }), "course c1 does not exist");
  courses.define("c1", 3);
  EXPECT_EQ(refused([&] { courses.define("c1", 5); }), "course c1 exists already");
  courses.subscribe("ada", "c1");
  EXPECT_EQ(refused([&] { courses.subscribe("ada", "c1"); }), "ada is subscribed already");
  courses.subscribe("bob", "c1");
  courses.change_capacity("c1", 2);
  EXPECT_EQ(refused([&] { courses.subscribe("cleo", "c1"); }), "course c1 is fully booked");
  courses.change_capacity("c1", 4);
  courses.subscribe("cleo", "c1");
  for (int i = 2; i <= 11; ++i) {
    courses.define("c" + std::to_string(i), 10);
    if (i <= 10) courses.subscribe("ada", "c" + std::to_string(i));
  }
  EXPECT_EQ(refused([&] { courses.subscribe("ada", "c11"); }), "ada has too many courses");
}

TEST_P(DcbExamplesTest, CourseSubscriptionsOfManyAtOnce) {
  dcb::Courses(store()).define("small", 5);
  dcb::Courses(store()).define("large", 100);
  std::atomic<int> in_small{0};
  in_parallel(12, [&](int student) {
    dcb::Courses courses(store());
    const std::string name = "s" + std::to_string(student);
    if (refused([&] { courses.subscribe(name, "small"); }) == "allowed") ++in_small;
    EXPECT_EQ(refused([&] { courses.subscribe(name, "large"); }), "allowed");
  });
  EXPECT_EQ(in_small, 5);
}

TEST_P(DcbExamplesTest, UniqueUsername) {
  dcb::Usernames names(store(), now());
  names.register_account("1", "ada");
  EXPECT_EQ(refused([&] { names.register_account("2", "ada"); }), "username ada is claimed");
  names.change("1", "ada", "lovelace");
  EXPECT_EQ(refused([&] { names.register_account("2", "lovelace"); }), "username lovelace is claimed");
  EXPECT_EQ(refused([&] { names.register_account("2", "ada"); }), "username ada is claimed")
      << "still reserved";
  clock_.advance(dcb::Usernames::retention);
  names.register_account("2", "ada");
  names.close("2", "ada");
  EXPECT_EQ(refused([&] { names.register_account("3", "ada"); }), "username ada is claimed");
  clock_.advance(dcb::Usernames::retention);
  names.register_account("3", "ada");

  std::atomic<int> winners{0};
  in_parallel(8, [&](int i) {
    dcb::Usernames mine(store(), now());
    if (refused([&] { mine.register_account("x" + std::to_string(i), "wanted"); }) == "allowed") ++winners;
  });
  EXPECT_EQ(winners, 1);
}

TEST_P(DcbExamplesTest, InvoiceNumbersWithoutGapsBySixteenAtOnce) {
  constexpr int creators = 16;
  constexpr int each = 5;
  std::vector<std::vector<std::int64_t>> numbers(creators);
  in_parallel(creators, [&](int creator) {
    for (int i = 0; i < each; ++i) {
      numbers[static_cast<std::size_t>(creator)].push_back(dcb::Invoices(store()).create("{}"));
    }
  });
  std::set<std::int64_t> all;
  for (const auto& mine : numbers) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(creators * each)) << "none twice";
  EXPECT_EQ(*all.begin(), 1);
  EXPECT_EQ(*all.rbegin(), creators * each) << "no gap";
  std::int64_t last = 0;
  for (const StoredEvent& event : store().read(Query::type("InvoiceCreated"))) {
    EXPECT_EQ(event.tags().front().value, std::to_string(++last)) << "and in order";
  }
}

TEST_P(DcbExamplesTest, OptInToken) {
  dcb::OptIn opt_in(store(), now());
  EXPECT_NE(refused([&] { opt_in.confirm("ada@example.org", "111"); }).find("no pending"), std::string::npos);
  opt_in.initiate("ada@example.org", "111");
  EXPECT_NE(refused([&] { opt_in.confirm("ada@example.org", "222"); }).find("no pending"), std::string::npos);
  EXPECT_NE(refused([&] { opt_in.confirm("bob@example.org", "111"); }).find("no pending"), std::string::npos);
  opt_in.confirm("ada@example.org", "111");
  EXPECT_EQ(refused([&] { opt_in.confirm("ada@example.org", "111"); }), "the token has been used");
  opt_in.initiate("bob@example.org", "333");
  clock_.advance(dcb::OptIn::valid + 1min);
  EXPECT_EQ(refused([&] { opt_in.confirm("bob@example.org", "333"); }), "the token has expired");
}

TEST_P(DcbExamplesTest, ProductPriceWithGrace) {
  dcb::Products products(store(), now());
  EXPECT_EQ(refused([&] { products.order({{"p1", 100}}); }), "no such product: p1");
  products.define("p1", 100);
  products.define("p2", 7);
  products.order({{"p1", 100}});
  EXPECT_EQ(refused([&] { products.order({{"p1", 99}}); }), "the price of p1 has changed");
  clock_.advance(1h);
  products.change_price("p1", 120);
  products.order({{"p1", 100}});
  products.order({{"p1", 120}, {"p2", 7}});
  EXPECT_EQ(refused([&] { products.order({{"p1", 120}, {"p2", 8}}); }), "the price of p2 has changed");
  clock_.advance(dcb::Products::grace + 1s);
  EXPECT_EQ(refused([&] { products.order({{"p1", 100}}); }), "the price of p1 has changed");
  products.order({{"p1", 120}});
}

TEST_P(DcbExamplesTest, IdempotencyToken) {
  dcb::Orders orders(store());
  EXPECT_EQ(orders.place("1", "token-a").kind, CommandOutcome::Kind::appended);
  EXPECT_EQ(orders.place("1", "token-a").kind, CommandOutcome::Kind::already_done);
  EXPECT_EQ(orders.place("1", "token-b").kind, CommandOutcome::Kind::appended);
  std::atomic<int> placed{0};
  in_parallel(8, [&](int) {
    if (dcb::Orders(store()).place("2", "token-c").kind == CommandOutcome::Kind::appended) ++placed;
  });
  EXPECT_EQ(placed, 1);
}

}  // namespace
}  // namespace postrider
