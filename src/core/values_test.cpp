// SPDX-License-Identifier: Apache-2.0
// Small things: identifiers, rows, the log to stderr, the exporter that counts nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <type_traits>

#include "postrider/error.hpp"
#include "postrider/identifier.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"
#include "postrider/value.hpp"
#include "support/refusal.hpp"

namespace postrider {
namespace {

using test::refusal;

using ::testing::HasSubstr;

bool identifies(const std::string& name) {
  return refusal([&] { (void)Identifier(name); }) == "accepted";
}

TEST(Identifier, TakesWhatMayStandInSql) {
  EXPECT_EQ(Identifier("postrider").str(), "postrider");
  EXPECT_EQ(Identifier("_a9_"), Identifier(std::string("_a9_")));
  EXPECT_TRUE(identifies(std::string(63, 'a')));
}

TEST(Identifier, RefusesEverythingElseByName) {
  EXPECT_EQ(refusal([] { (void)Identifier("Shop\"; drop table users"); }),
            "postrider: 'Shop\"; drop table users' cannot name a schema or a prefix: it must match "
            "^[a-z_][a-z0-9_]{0,62}$. Hint: use 1 to 63 lower-case letters, digits and underscores, no digit "
            "first");
  for (const std::string name : {"", "9a", "A", "a-b", "a b", "\u00E4", "a\n"})
    EXPECT_FALSE(identifies(name)) << name;
  EXPECT_FALSE(identifies(std::string(64, 'a')));
  EXPECT_FALSE(identifies(std::string("a\0", 2)));
}

RC_GTEST_PROP(Identifier, AgreesWithItsPattern, ()) {
  static const std::regex pattern("^[a-z_][a-z0-9_]{0,62}$");
  const auto name = *rc::gen::container<std::string>(rc::gen::weightedOneOf<char>(
      {{20, rc::gen::elementOf(std::string("abz_059"))}, {1, rc::gen::arbitrary<char>()}}));
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) { return c > 0x1F && c < 0x7F; });
  RC_ASSERT(identifies(name) == (printable && std::regex_match(name, pattern)));
}

TEST(Value, HoldsEachKindOfParameter) {
  const std::string text = "text";
  EXPECT_TRUE(std::holds_alternative<std::monostate>(Value(nullptr).get()));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(Value(std::nullopt).get()));
  EXPECT_EQ(std::get<std::int64_t>(Value(true).get()), 1);
  EXPECT_EQ(std::get<std::int64_t>(Value(-7).get()), -7);
  EXPECT_EQ(std::get<double>(Value(0.5).get()), 0.5);
  EXPECT_EQ(std::get<std::string_view>(Value("literal").get()), "literal");
  EXPECT_EQ(std::get<std::string_view>(Value(text).get()).data(), text.data())
      << "text is borrowed, not copied";
  EXPECT_EQ(std::get<Blob>(Value(Blob{text}).get()).bytes, text);
}

enum Unscoped { one };
enum class Scoped { one };
struct LikeANumber {
  operator double() const { return 1; }  // NOLINT(google-explicit-constructor)
};

// What would be bound as something else than it is does not compile.
static_assert(!std::is_constructible_v<Value, int*>);
static_assert(!std::is_constructible_v<Value, void*>);
static_assert(!std::is_constructible_v<Value, const unsigned char*>);
static_assert(!std::is_constructible_v<Value, std::string*>);
static_assert(!std::is_constructible_v<Value, std::shared_ptr<int>>);
static_assert(!std::is_constructible_v<Value, void (*)()>);
static_assert(!std::is_constructible_v<Value, char>);
static_assert(!std::is_constructible_v<Value, wchar_t>);
static_assert(!std::is_constructible_v<Value, char8_t>);
static_assert(!std::is_constructible_v<Value, char16_t>);
static_assert(!std::is_constructible_v<Value, char32_t>);
static_assert(!std::is_constructible_v<Value, long double>);
static_assert(!std::is_constructible_v<Value, Unscoped>);
static_assert(!std::is_constructible_v<Value, Scoped>);
static_assert(!std::is_constructible_v<Value, LikeANumber>);
static_assert(!std::is_constructible_v<Value, std::filesystem::path>, "its string would be gone too early");
static_assert(!std::is_constructible_v<Value, std::optional<int*>>);
static_assert(std::is_constructible_v<Value, char*>);
static_assert(std::is_constructible_v<Value, std::int8_t>);
static_assert(std::is_constructible_v<Value, std::optional<std::string>>);
static_assert(std::is_convertible_v<std::string&, Value>);

TEST(Value, NothingIsNull) {
  const char* const no_text = nullptr;
  EXPECT_TRUE(std::holds_alternative<std::monostate>(Value(no_text).get()));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(Value(std::optional<int>{}).get()));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(Value(std::optional<std::string>{}).get()));
}

TEST(Value, AnOptionalIsWhatItHolds) {
  const std::optional<std::string> text = "text";
  EXPECT_EQ(std::get<std::string_view>(Value(text).get()).data(), text->data()) << "borrowed, not copied";
  EXPECT_EQ(std::get<std::int64_t>(Value(std::optional<int>{7}).get()), 7);
  EXPECT_EQ(std::get<std::int64_t>(Value(std::optional<bool>{true}).get()), 1);
}

TEST(Value, ANumberThatNoSqlIntegerHoldsIsRefused) {
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(std::get<std::int64_t>(Value(largest).get()), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(refusal([] { (void)Value(largest + 1); }),
            "postrider: cannot bind 9223372036854775808 as a parameter: it does not fit into a signed 64-bit "
            "integer. Hint: pass it as text");
  EXPECT_EQ(std::get<std::int64_t>(Value(std::numeric_limits<std::int64_t>::min()).get()),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(std::get<std::int64_t>(Value(std::uint8_t{255}).get()), 255);
  EXPECT_EQ(std::get<double>(Value(0.5F).get()), 0.5);
}

TEST(Rows, GivesTextNumbersAndNull) {
  const Rows rows{{{"1", std::nullopt}, {"-9223372036854775808", "x"}}, 0};
  EXPECT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows.text(1, 1), "x");
  EXPECT_EQ(rows.integer(0, 0), 1);
  EXPECT_EQ(rows.integer(1, 0), std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(rows.is_null(0, 1));
  EXPECT_FALSE(rows.is_null(0, 0));
}

TEST(Rows, SaysWhatIsMissing) {
  const Rows rows{{{"1", std::nullopt}, {"12a", "9223372036854775808"}, {"", " 1"}}, 0};
  EXPECT_EQ(
      refusal([&] { (void)rows.text(3, 0); }),
      "postrider: there is no row 3, column 0: the statement returned 3 rows. Hint: check size() first");
  EXPECT_EQ(
      refusal([&] { (void)rows.is_null(0, 2); }),
      "postrider: there is no row 0, column 2: the statement returned 2 columns. Hint: columns count from 0");
  EXPECT_EQ(refusal([&] { (void)rows.text(0, 1); }),
            "postrider: no value at row 0, column 1: it is NULL. Hint: ask is_null() first");
  EXPECT_EQ(refusal([&] { (void)rows.integer(1, 0); }),
            "postrider: no integer at row 1, column 0: it is '12a'. Hint: read it with text()");
  EXPECT_THAT(refusal([&] { (void)rows.integer(1, 1); }), HasSubstr("does not fit into 64 bits"));
  EXPECT_THAT(refusal([&] { (void)rows.integer(2, 0); }), HasSubstr("it is ''"));
  EXPECT_THAT(refusal([&] { (void)rows.integer(2, 1); }), HasSubstr("it is ' 1'"));
}

TEST(Log, WritesWarningsAndErrorsAsOneLineEach) {
  const LogCallback log = log_to_stderr();
  ::testing::internal::CaptureStderr();
  log(LogLevel::debug, "a");
  log(LogLevel::info, "b");
  log(LogLevel::warning, "queue\nfull\r");
  log(LogLevel::error, Error(ErrorCode::database, "it broke").what());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "postrider warning: queue full \npostrider error: it broke\n");
}

TEST(Log, WritesFromTheLevelAskedFor) {
  const LogCallback log = log_to_stderr(LogLevel::debug);
  ::testing::internal::CaptureStderr();
  log(LogLevel::debug, "a");
  log(LogLevel::info, "b");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "postrider debug: a\npostrider info: b\n");
}

TEST(Metrics, NoneIsOneObjectThatTakesEverything) {
  MetricsExporter& none = MetricsExporter::none();
  EXPECT_EQ(&none, &MetricsExporter::none());
  none.increment_hot_enqueued();
  none.increment_stale_completions(3);
  none.record_queue_depths(1, 2);
  none.observe_flush(1, Duration{1});
}

}  // namespace
}  // namespace postrider
