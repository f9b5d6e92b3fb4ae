// SPDX-License-Identifier: Apache-2.0
#include "app/cli/table_fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "app/cli/cli_fixture.hpp"
#include "app/cli/output.hpp"

namespace postrider::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TableFit, WhatFitsStaysAsItIs) {
  const std::vector<ColumnNeed> columns{{.title = 2, .widest = 26}, {.title = 5, .widest = 90, .cut = true}};
  EXPECT_THAT(fitted(columns, 118), ElementsAre(26, 90));
}

TEST(TableFit, TextsAreCutBeforeColumnsAreLeftOut) {
  const std::vector<ColumnNeed> columns{{.title = 2, .widest = 26},
                                        {.title = 4, .widest = 24, .spare = 1},
                                        {.title = 5, .widest = 90, .cut = true}};
  EXPECT_THAT(fitted(columns, 100), ElementsAre(26, 24, 46)) << "it takes what is left";
  EXPECT_THAT(fitted(columns, 74), ElementsAre(26, 24, 20));
  EXPECT_THAT(fitted(columns, 73), ElementsAre(26, 0, 45)) << "the room of the other is there for it";
}

TEST(TableFit, EmptyColumnsGoFirstThenThoseThatMatterLeast) {
  const std::vector<ColumnNeed> columns{{.title = 2, .widest = 20},
                                        {.title = 4, .widest = 20, .spare = 1},
                                        {.title = 4, .widest = 20, .spare = 3},
                                        {.title = 9, .widest = 9, .spare = 2, .empty = true}};
  EXPECT_THAT(fitted(columns, 74), ElementsAre(20, 20, 20, 0));
  EXPECT_THAT(fitted(columns, 63), ElementsAre(20, 20, 0, 0));
  EXPECT_THAT(fitted(columns, 21), ElementsAre(20, 0, 0, 0));
  EXPECT_THAT(fitted(columns, 5), ElementsAre(20, 0, 0, 0)) << "an id stays whole";
}

TEST(TableFit, WithoutAnythingToLeaveOutTextsAreCutFurther) {
  const std::vector<ColumnNeed> columns{{.title = 2, .widest = 26}, {.title = 5, .widest = 90, .cut = true}};
  EXPECT_THAT(fitted(columns, 40), ElementsAre(26, 12));
  EXPECT_THAT(fitted(columns, 10), ElementsAre(26, 8));
}

TEST(TableFit, ATableSaysWhatItLeavesOut) {
  Table table({{"id", "ID"},
               {.name = "at", .title = "SINCE", .spare = 1},
               {.name = "node", .title = "NODE", .spare = 2},
               {.name = "error", .title = "ERROR", .cut = true}});
  table.add({{"id", "01M3AAAAAAAAAAAAAAAAAAAAAA"},
             {"at", "2026-01-01T00:00:00.000Z"},
             {"node", nullptr},
             {"error", std::string(30, 'e')}});
  const auto shown = [&](std::optional<std::size_t> columns) {
    std::ostringstream out;
    table.print(out, Format::table, "", false, columns);
    return out.str();
  };
  EXPECT_EQ(shown(std::nullopt),
            "ID                          SINCE                     NODE  ERROR\n"
            "01M3AAAAAAAAAAAAAAAAAAAAAA  2026-01-01T00:00:00.000Z  -     " +
                std::string(30, 'e') + "\n");
  EXPECT_EQ(shown(76),
            "ID                          SINCE                     ERROR\n"
            "01M3AAAAAAAAAAAAAAAAAAAAAA  2026-01-01T00:00:00.000Z  " +
                std::string(21, 'e') + "…\n")
      << "nothing is lost with a column that has nothing";
  EXPECT_EQ(shown(50),
            "ID                          ERROR\n"
            "01M3AAAAAAAAAAAAAAAAAAAAAA  " +
                std::string(21, 'e') +
                "…\n"
                "(without SINCE: the terminal has 50 columns; -o json has all)\n");
}

/// The program on a terminal of its own. `before` is what the shell does there first.
std::string on_terminal(const std::string& before, const std::string& storage,
                        const test::ChildProcess::Environment& environment = {}) {
  test::ChildProcess child({"/bin/sh", "-c",
                            "SHELL=/bin/sh exec script -qec '" + before + " exec " + test::program_path() +
                                " outbox list --storage " + storage + "' /dev/null </dev/null"},
                           environment);
  std::string all;
  while (const auto line = child.read_line()) all += *line + "\n";
  return all;
}

TEST(TableFit, OnATerminalATableIsAsWideAsTheTerminal) {
  const test::TempDir dir;
  const std::string storage = "sqlite:" + dir.file("x.db");
  CommandLine line;
  ASSERT_EQ(line.run({"migrate", "--storage", storage}).code, 0);
  ASSERT_EQ(line.run({"publish", std::string(100, 't'), "--id", "order-with-a-long-name-4711", "--storage",
                      storage})
                .code,
            0);
  const auto widest = [](const std::string& text) {
    std::size_t most = 0;
    std::istringstream lines(text);
    for (std::string one; std::getline(lines, one);) {
      if (one.starts_with("(without")) continue;
      while (!one.empty() && one.back() == '\r') one.pop_back();
      for (std::size_t at; (at = one.find("…")) != std::string::npos;) one.replace(at, 3, ".");
      for (std::size_t at; (at = one.find("\x1b[")) != std::string::npos;) {
        one.erase(at, one.find('m', at) - at + 1);
      }
      most = std::max(most, one.size());
    }
    return most;
  };
  for (const std::string& shown : {on_terminal("stty cols 90 &&", storage, {{"COLUMNS", ""}}),
                                   on_terminal("stty cols 200 &&", storage, {{"COLUMNS", "90"}})}) {
    EXPECT_THAT(shown,
                AllOf(HasSubstr("order-with-a-long-name-4711"), HasSubstr("tt…"), HasSubstr("STATUS")));
    EXPECT_LE(widest(shown), 90U) << shown;
    EXPECT_GT(widest(shown), 60U) << shown;
  }
  line.environment = {{"COLUMNS", "40"}};
  EXPECT_THAT(line.run({"outbox", "list", "--storage", storage}).out,
              AllOf(HasSubstr(std::string(100, 't')), HasSubstr("LEASED UNTIL"), Not(HasSubstr("…"))))
      << "who is no terminal gets all";
}

}  // namespace
}  // namespace postrider::cli
