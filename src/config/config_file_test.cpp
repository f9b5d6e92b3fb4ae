// SPDX-License-Identifier: Apache-2.0
#include "config/config_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "postrider/error.hpp"
#include "support/temp_dir.hpp"

namespace postrider::config {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Kind = ConfigValue::Kind;

std::string refusal(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "taken";
}
std::string refused_text(std::string_view text) {
  return refusal([&] { (void)ConfigFile::parse(text, "x.toml"); });
}

TEST(ConfigFileTest, ValuesAreFlatAndInTheOrderOfTheFile) {
  const ConfigFile file = ConfigFile::parse(
      "name = \"shop\"\n"
      "\n"
      "[eventlog.async]\n"
      "queue-capacity = 10_000\n"
      "retry-budget = 0.5\n"
      "enabled = false\n"
      "user-id = '''\n"
      "two\n"
      "lines'''\n"
      "batch-size = 0x10\n"
      "[[topics]]\n"
      "hosts = [\"a\",\n"
      "  \"b\"]\n"
      "[empty]\n",
      "x.toml");
  struct Expected {
    const char* table;
    const char* name;
    Kind kind;
    const char* text;
    unsigned line;
  };
  const std::array<Expected, 8> expected{{{"", "name", Kind::text, "shop", 1},
                                          {"eventlog.async", "queue-capacity", Kind::integer, "10000", 4},
                                          {"eventlog.async", "retry-budget", Kind::number, "0.5", 5},
                                          {"eventlog.async", "enabled", Kind::flag, "false", 6},
                                          {"eventlog.async", "user-id", Kind::text, "two\nlines", 7},
                                          {"eventlog.async", "batch-size", Kind::integer, "16", 10},
                                          {"topics[0]", "hosts[0]", Kind::text, "a", 12},
                                          {"topics[0]", "hosts[1]", Kind::text, "b", 13}}};
  ASSERT_EQ(file.values().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const ConfigValue& value = file.values()[i];
    EXPECT_EQ(value.table, expected.at(i).table) << i;
    EXPECT_EQ(value.name, expected.at(i).name) << i;
    EXPECT_EQ(value.kind, expected.at(i).kind) << i;
    EXPECT_EQ(value.text, expected.at(i).text) << i;
    EXPECT_EQ(value.line, expected.at(i).line) << i;
  }
  std::vector<std::string> tables;
  for (const ConfigTable& table : file.tables()) tables.push_back(table.name);
  EXPECT_THAT(tables, ::testing::ElementsAre("eventlog", "eventlog.async", "topics[0]", "empty"));
  EXPECT_EQ(file.tables().back().line, 14U);
}

TEST(ConfigFileTest, WhatIsNoTomlIsRefusedWithLineAndColumn) {
  EXPECT_THAT(refused_text("a = 1\nb = = 2\n"), StartsWith("postrider: x.toml, line 2: column 5: "));
  EXPECT_THAT(refused_text("a = 1\n\n\na = 2\n"), HasSubstr("x.toml, line 4"));
  EXPECT_THAT(refused_text("a = \"open\n"), HasSubstr("x.toml, line 1"));
  EXPECT_THAT(refused_text("[t]\nwhen = 2026-06-01\n"), HasSubstr("x.toml, line 2: t.when is a date"));
  EXPECT_THAT(refused_text("a = \"\xff\"\n"), HasSubstr("x.toml, line 1"));
  EXPECT_THAT(refused_text(std::string(2 << 20, '#')), HasSubstr("1 MiB"));
  EXPECT_THAT(refused_text("a=" + std::string(5000, '[')), HasSubstr("x.toml, line 1"))
      << "no deep recursion";
}

TEST(ConfigFileTest, AFileThatCannotBeReadIsAnError) {
  const test::TempDir temp;
  for (const std::string& path : {temp.file("none.toml"), temp.path().string()}) {
    try {
      (void)ConfigFile::read(path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unavailable);
      EXPECT_THAT(error.what(), HasSubstr(path));
    }
  }
  std::ofstream(temp.file("empty.toml"));
  EXPECT_TRUE(ConfigFile::read(temp.file("empty.toml")).values().empty());
  std::ofstream(temp.file("one.toml")) << "a = 1\n";
  EXPECT_EQ(ConfigFile::read(temp.file("one.toml")).values().size(), 1U);
}

TEST(ConfigFileTest, RefusalsNameTheLineAndTheNearestName) {
  const ConfigFile file = ConfigFile::parse("[http]\n\nlistn = \"x\"\n[htpp]\n", "x.toml");
  constexpr std::array<std::string_view, 2> known{"listen", "tls"};
  constexpr std::array<std::string_view, 2> tables{"http", "storage"};
  EXPECT_EQ(refusal([&] { file.refuse_unknown(file.values()[0], known); }),
            "postrider: x.toml, line 3: there is no option 'listn' in [http]. Hint: did you mean listen?");
  EXPECT_EQ(refusal([&] { file.refuse_unknown(file.tables()[1], tables); }),
            "postrider: x.toml, line 4: there is no table 'htpp'. Hint: did you mean http?");
  EXPECT_EQ(refusal([&] { file.refuse(3, "too much", "why"); }), "postrider: x.toml, line 3: too much: why");
}

TEST(ConfigFileTest, TablesOfAnArrayAreNamedAsOneWritesThem) {
  const ConfigFile file = ConfigFile::parse("[[outbox.route]]\nsnik = 1\n[outbox.routes]\n", "x.toml");
  constexpr std::array<std::string_view, 2> known{"outbox", "outbox.routes[0]"};
  constexpr std::array<std::string_view, 1> options{"sink"};
  EXPECT_EQ(
      refusal([&] {
        file.refuse_unknown({"outbox.route[0]", 1}, known);
      }),
      "postrider: x.toml, line 1: there is no table 'outbox.route'. Hint: did you mean [[outbox.routes]]?");
  EXPECT_EQ(refusal([&] {
              file.refuse_unknown({"outbox.routes", 3}, known);
            }),
            "postrider: x.toml, line 3: [outbox.routes] is refused. Hint: write it as [[outbox.routes]]");
  EXPECT_EQ(
      refusal([&] { file.refuse_unknown(file.values()[0], options); }),
      "postrider: x.toml, line 2: there is no option 'snik' in [[outbox.route]]. Hint: did you mean sink?");
}

TEST(ConfigFileTest, WhatIsForgottenMostHasAHint) {
  EXPECT_THAT(refused_text("a = \"x\nb = 1\n"),
              HasSubstr("Hint: does the text have its quotation mark at the end?"));
  EXPECT_THAT(refused_text("a = \"x"), HasSubstr("Hint: does the text have its quotation mark at the end?"));
  EXPECT_THAT(refused_text("a = true_\n"), StartsWith("postrider: x.toml, line 1: column "));
  EXPECT_THAT(refused_text("a = 1\na = 2\n"), HasSubstr("Hint: it stands there twice"));
}

// Each part is a table inside the one before, and took a piece of the stack.
TEST(ConfigFileTest, ANameOfAThousandPartsIsRefusedWithItsLine) {
  std::string parts;
  for (int i = 0; i < 50'000; ++i) parts += "a.";
  for (const std::string& line : {parts + "b = 1", "[" + parts + "b]", "[[" + parts + "b]]",
                                  "x = {" + parts + "b = 1}", "x = [{y = 1}, {" + parts + "b = 1}]"}) {
    EXPECT_THAT(refused_text("a = 1\n" + line + "\n"),
                HasSubstr("line 2: this name has too many parts: no option has more than a few"))
        << line.substr(0, 10);
  }
  const std::string dots(1000, '.');
  std::string numbers = "1.5";
  for (int i = 0; i < 99; ++i) numbers += ", 1.5";
  const ConfigFile file =
      ConfigFile::parse("a = \"" + dots + "\\\"" + dots + "\" # " + dots + "\nb = '" + dots +
                            "'\nc = \"\"\"\n" + dots + "\n\"\"\"\nd = [" + numbers + "]\n",
                        "x.toml");
  EXPECT_EQ(file.values().size(), 103U) << "dots elsewhere are no matter";
}

// The parser did not know what to do with such a letter, where undefined behaviour is looked for.
TEST(ConfigFileTest, ANameThatIsNotAsciiIsRefusedUnlessItIsQuoted) {
  EXPECT_THAT(refused_text("a = 1\nGr\u00F6\u00DFe = 2\n"),
              StartsWith("postrider: x.toml, line 2: column 3: "));
  EXPECT_THAT(refused_text("[\u0416]\n"), HasSubstr("line 1: "));
  EXPECT_EQ(refused_text("\"Gr\u00F6\u00DFe\" = \"\u0416\" # \u00FC\n"), "taken");
}

// The parser asserts that a name follows: the process ended there.
TEST(ConfigFileTest, ABracketWithoutANameOnItsLineIsRefusedWithItsLine) {
  EXPECT_THAT(refused_text("[\n"), StartsWith("postrider: x.toml, line 1: this is no TOML"));
  EXPECT_THAT(refused_text("a = 1\n\n[\n\n[[s[s"), HasSubstr("line 3: "));
  EXPECT_THAT(refused_text("[a]\nb = \"\"\"\n[\n\"\"\"\nc = [\n1]\n[[\nd]]\n[\n"), HasSubstr("line 7: "));
  EXPECT_THAT(refused_text("[\n"), HasSubstr("Hint: a table's name stands between its brackets"));
}

}  // namespace
}  // namespace postrider::config
