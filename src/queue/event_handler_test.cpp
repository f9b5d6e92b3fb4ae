// SPDX-License-Identifier: Apache-2.0
// Which functions `handle` may be: compiling is the test, and that each is called with its event.
#include "postrider/event_handler.hpp"

#include <gtest/gtest.h>

#include <type_traits>

#include "postrider/event.hpp"

namespace postrider {
namespace {

struct Order {
  int number = 0;
};

struct ByReference {
  void handle(const Order&) {}
};
struct ByValue {
  void handle(Order order) { seen = order.number; }
  int seen = 0;
};
struct ByConstValue {
  void handle(const Order order) const { EXPECT_EQ(order.number, 7); }
};
struct Noexcept {
  void handle(const Order& order) noexcept { seen = order.number; }
  int seen = 0;
};
struct ConstNoexcept {
  EventHandledResult handle(Order order, HandlerContext&) const noexcept {
    return EventHandledResult::unrecoverable_error(std::to_string(order.number));
  }
};
struct Static {
  static EventHandledResult handle(const Order& order) {
    return EventHandledResult::transient_error(std::to_string(order.number));
  }
};
struct StaticNoexcept {
  static void handle(Event, HandlerContext&) noexcept {}
};

template <class Handler>
using Handled = typename detail::HandledEvent<decltype(&Handler::handle)>::Type;

static_assert(std::is_same_v<Handled<ByReference>, Order>);
static_assert(std::is_same_v<Handled<ByValue>, Order>);
static_assert(std::is_same_v<Handled<ByConstValue>, Order>);
static_assert(std::is_same_v<Handled<Noexcept>, Order>);
static_assert(std::is_same_v<Handled<ConstNoexcept>, Order>);
static_assert(std::is_same_v<Handled<Static>, Order>);
static_assert(std::is_same_v<Handled<StaticNoexcept>, Event>);

class NoContext final : public HandlerContext {
 public:
  [[nodiscard]] const Event& event() const noexcept override { return event_; }
  [[nodiscard]] const Claim& claim() const noexcept override { return claim_; }
  [[nodiscard]] std::int32_t attempts() const noexcept override { return 1; }
  [[nodiscard]] std::int32_t crashes() const noexcept override { return 0; }
  [[nodiscard]] Attempt failed() const noexcept override { return {}; }
  void complete(Tx& /*tx*/) override {}
  bool once(std::string_view /*name*/, const std::function<void()>& /*task*/) override { return false; }
  bool once(Tx& /*tx*/, std::string_view /*name*/, const std::function<void(Tx&)>& /*task*/) override {
    return false;
  }

 private:
  Event event_ = Event::json("T", "{}");
  Claim claim_;
};

template <class Handler>
EventHandledResult call(const std::shared_ptr<Handler>& handler) {
  NoContext context;
  return detail::HandlerCall<Handler, Order>{handler}(Order{7}, context);
}

TEST(EventHandler, MayTakeItsEventByValueAndMayBeNoexceptOrStatic) {
  const auto by_value = std::make_shared<ByValue>();
  EXPECT_EQ(call(by_value).verdict(), HandlerVerdict::success);
  EXPECT_EQ(by_value->seen, 7);
  EXPECT_EQ(call(std::make_shared<ByConstValue>()).verdict(), HandlerVerdict::success);
  const auto quiet = std::make_shared<Noexcept>();
  EXPECT_EQ(call(quiet).verdict(), HandlerVerdict::success);
  EXPECT_EQ(quiet->seen, 7);
  EXPECT_EQ(call(std::make_shared<ConstNoexcept>()).reason(), "7");
  EXPECT_EQ(call(std::make_shared<Static>()).reason(), "7");
}

TEST(EventHandler, AFunctionMayTakeItsEventByValue) {
  NoContext context;
  int seen = 0;
  auto by_value = [&](Order order) noexcept { seen = order.number; };
  EXPECT_EQ(detail::call_handler(by_value, Order{7}, context).verdict(), HandlerVerdict::success);
  EXPECT_EQ(seen, 7);
}

}  // namespace
}  // namespace postrider
