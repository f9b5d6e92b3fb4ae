// SPDX-License-Identifier: Apache-2.0
#include "outbox/failure_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "outbox/registry.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Delivery first_try{Attempt{0}, Source::hot};

class FailureLogTest : public ::testing::Test {
 protected:
  void fail(std::size_t listener, const std::string& type, const std::string& reason = "no luck") {
    failures_->failed(listener, Event::json(type, "{}"), first_try, reason);
  }
  ManualClock clock_;
  std::vector<std::string> lines_;
  std::shared_ptr<FailureLog> failures_ = std::make_shared<FailureLog>(
      [this](LogLevel level, std::string_view line) {
        EXPECT_EQ(level, LogLevel::warning);
        lines_.emplace_back(line);
      },
      clock_);
};

TEST_F(FailureLogTest, TheFirstFailureIsTold) {
  const Event event = Event::json("Paid", "{}");
  failures_->failed(0, event, {Attempt{2}, Source::cold}, "no luck");
  EXPECT_THAT(lines_, ElementsAre("postrider: attempt 3 at event " + event.id().str() +
                                  " of type Paid failed: no luck"));
}

TEST_F(FailureLogTest, FurtherFailuresAreCountedAndToldAMinuteLater) {
  for (int i = 0; i < 5; ++i) fail(0, "Paid");
  clock_.advance(1min - 1us);
  fail(0, "Paid");
  EXPECT_EQ(lines_.size(), 1U);
  clock_.advance(1us);
  fail(0, "Paid");
  ASSERT_EQ(lines_.size(), 2U);
  EXPECT_THAT(lines_[1], HasSubstr("(and 5 more failures of this type since the last warning)"));
  clock_.advance(1min);
  fail(0, "Paid");
  EXPECT_THAT(lines_[2], Not(HasSubstr("more failure")));
}

TEST_F(FailureLogTest, DeadLettersAreToldAsErrorsAndLikeFailuresOnceAMinuteOfAType) {
  std::vector<std::string> errors;
  FailureLog log(
      [&](LogLevel level, std::string_view line) {
        EXPECT_EQ(level, LogLevel::error);
        errors.emplace_back(line);
      },
      clock_);
  const Event event = Event::json("Paid", "{}");
  for (int i = 0; i < 2'000; ++i) log.died(event, "refused");
  const std::string line = "postrider: event " + event.id().str() + " of type Paid is dead: refused";
  EXPECT_THAT(errors, ElementsAre(line));
  log.died(Event::json("Sent", "{}"), "refused");
  EXPECT_EQ(errors.size(), 2U) << "another type";
  clock_.advance(1min);
  log.died(event, "refused");
  EXPECT_EQ(errors.back(), line + " (and 1999 more dead letters of this type since the last error)");
}

TEST_F(FailureLogTest, TypesAndListenersAreToldApart) {
  fail(0, "Paid");
  fail(0, "Sent");
  fail(1, "Paid");
  EXPECT_EQ(lines_.size(), 3U);
}

TEST_F(FailureLogTest, ManyTypesDoNotFillTheMemory) {
  for (std::size_t i = 0; i < FailureLog::most_remembered + 10; ++i) fail(0, "T" + std::to_string(i));
  EXPECT_EQ(lines_.size(), FailureLog::most_remembered);
  clock_.advance(1min);
  fail(0, "New");
  EXPECT_EQ(lines_.size(), FailureLog::most_remembered + 1) << "the old ones made room";
}

TEST_F(FailureLogTest, ALogThatThrowsDoesNoHarm) {
  FailureLog failures([](LogLevel, std::string_view) { throw std::runtime_error("no log"); }, clock_);
  EXPECT_NO_THROW(failures.failed(0, Event::json("T", "{}"), first_try, "no luck"));
  EXPECT_NO_THROW(failures.nobody_listens("T"));
  EXPECT_NO_THROW(failures.died(Event::json("T", "{}"), "refused"));
}

TEST_F(FailureLogTest, TheRegistryTellsOfEveryWayToFail) {
  ListenerRegistry registry(failures_);
  registry.add("Throws", [](const Event&) { throw std::runtime_error("thrown"); });
  registry.add("ThrowsOddly", [](const Event&) { throw 42; });  // NOLINT(hicpp-exception-baseclass)
  registry.add("Fails", [](const Event&) { return Outcome::failed("returned"); });
  registry.add("Waits", [](const Event&) { return Outcome::retry_after(1s); });
  registry.add("Works", [](const Event&) {});
  const auto run = [&](const char* type) {
    for (const auto& listener : *registry.listeners_for(type))
      (*listener)(Event::json(type, "{}"), first_try);
  };
  EXPECT_THROW(run("Throws"), std::runtime_error) << "the exception itself goes on";
  EXPECT_THROW(run("ThrowsOddly"), int);
  run("Fails");
  run("Waits");
  run("Works");
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("Throws failed: thrown"), HasSubstr("not a std::exception"),
                                  HasSubstr("Fails failed: returned")));
}

TEST_F(FailureLogTest, ATypeThatNobodyHearsIsToldOnce) {
  ListenerRegistry registry(failures_);
  registry.add("Known", [](const Event&) {});
  (void)registry.listeners_for("Known");
  EXPECT_THAT(lines_, IsEmpty());
  (void)registry.listeners_for("Unknown");
  clock_.advance(1h);
  (void)registry.listeners_for("Unknown");
  EXPECT_THAT(lines_,
              ElementsAre(HasSubstr("no listener is registered for event type 'Unknown' on this node")));
}

}  // namespace
}  // namespace postrider
