// SPDX-License-Identifier: Apache-2.0
// docs/daemon.md and packaging/postrider.toml, against the options that there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include "app/config/daemon_config.hpp"
#include "app/sinks/sink_kinds.hpp"
#include "support/places.hpp"

namespace postrider {
namespace {

using config::Effective;

constexpr std::array<const char*, 1> no_environment{nullptr};

std::string content(const std::string& path) {
  std::ifstream in(test::source_file(path));
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_TRUE(in) << path;
  return text.str();
}

/// What each type of sink needs to be taken. A new one is added here and described in docs/daemon.md.
const std::map<std::string, std::string>& needed_of_sinks() {
  static const std::map<std::string, std::string> all{{"file", "path = \"x.jsonl\"\n"},
                                                      {"kafka", "brokers = \"h:9092\"\ntopic = \"t\"\n"},
                                                      {"nats", ""},
                                                      {"rabbitmq", "queue = \"\"\n"},
                                                      {"redis", ""},
                                                      {"webhook", "url = \"https://example.org/\"\n"}};
  return all;
}

/// Nothing for a text that is empty, and for a secret, whose default is not shown.
std::string plain(const std::string& value) {
  return value == "\"\"" || value == "\"***\"" ? std::string() : value;
}

/// Options by table; empty for one without a default.
using Tables = std::map<std::string, std::map<std::string, std::string>>;

/// The tables under the headings "### `[storage]`".
Tables documented() {
  Tables tables;
  std::istringstream text(content("docs/daemon.md"));
  std::string table;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("#")) table = line.starts_with("### ") ? line.substr(4) : std::string();
    if (table.empty() || !line.starts_with("| `")) continue;
    const std::size_t name_end = line.find("` | ");
    const std::size_t value_end = line.find(" |", name_end + 3);
    if (name_end == std::string::npos || value_end == std::string::npos) {
      ADD_FAILURE() << "cannot read: " << line;
      continue;
    }
    std::string value = line.substr(name_end + 4, std::max(value_end, name_end + 4) - name_end - 4);
    std::erase(value, '`');
    const std::string name = line.substr(3, name_end - 3);
    if (name.find('<') != std::string::npos) continue;  // any option that begins like this
    EXPECT_TRUE(tables[table].emplace(name, plain(value)).second) << "twice: " << line;
  }
  return tables;
}

/// The options of a configuration that has everything once.
Tables in_force() {
  Tables tables;
  for (const std::string_view kind : sinks::kinds()) {
    const auto needed = needed_of_sinks().find(std::string(kind));
    if (needed == needed_of_sinks().end()) {
      ADD_FAILURE() << "sinks of the type '" << kind
                    << "' are unknown here: add what they need to this test, and "
                    << "describe their options in docs/daemon.md";
      continue;
    }
    const std::string text =
        "[storage]\nurl = \"sqlite:x.db\"\n[relay.topics.t]\npublishers = [\"s\"]\n"
        "[[outbox.routes]]\nsink = \"s\"\n[sinks.s]\ntype = \"" +
        std::string(kind) + "\"\n" + needed->second;
    for (const Effective& one :
         config::parse_daemon_config(text, "t.toml", no_environment.data()).effective) {
      std::string table = "`[" + one.table + "]`";
      if (one.table == "relay.topics.t") table = "`[relay.topics.<name>]`";
      if (one.table == "relay.topics.t.backoff") table = "`[relay.backoff]`";
      if (one.table == "outbox.routes[0]") table = "`[[outbox.routes]]`";
      if (one.table == "sinks.s") table = "`[sinks.<name>]` with `type = \"" + std::string(kind) + "\"`";
      tables[table][one.name] = one.origin == Effective::Origin::standard ? plain(one.value) : std::string();
    }
  }
  return tables;
}

TEST(ConfigReference, HasEveryOptionWithItsDefaultAndNoOther) {
  Tables documents = documented();
  Tables options = in_force();
  for (const auto& [kind, needed] : needed_of_sinks()) {
    const auto kinds = sinks::kinds();
    const std::string table = "`[sinks.<name>]` with `type = \"" + kind + "\"`";
    // One that this build lacks cannot be looked at.
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) documents.erase(table);
  }
  // What all sinks have is told once.
  const auto common = documents.find("`[sinks.<name>]`");
  ASSERT_NE(common, documents.end());
  for (auto& [table, names] : options) {
    if (!table.starts_with("`[sinks.<name>]` with ")) continue;
    for (const auto& [name, value] : common->second) {
      EXPECT_EQ(names.count(name), 1U) << "not all sinks have " << name;
      EXPECT_EQ(names[name], value) << name;
      names.erase(name);
    }
  }
  for (const auto& [table, names] : options) {
    const auto found = documents.find(table);
    ASSERT_NE(found, documents.end()) << "docs/daemon.md lacks the table " << table;
    EXPECT_EQ(found->second, names) << "docs/daemon.md, table " << table;
  }
  EXPECT_EQ(documents.size(), options.size() + 1) << "docs/daemon.md has a table that there is not";
}

/// What is commented out in the example is an option as well, unless it is prose.
TEST(ConfigReference, TheExampleIsTakenAlsoWithoutItsComments) {
  const std::string text = content("packaging/postrider.toml");
  (void)config::parse_daemon_config(text, "postrider.toml", no_environment.data());
  std::string all;
  std::istringstream lines(text);
  std::size_t uncommented = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string bare = line.starts_with("# ") ? line.substr(2) : line;
    const std::string_view name = std::string_view(bare).substr(0, bare.find(" = "));
    const bool option = bare.find(" = ") != std::string::npos && name.find(' ') == std::string_view::npos;
    if (bare != line && !option && !bare.starts_with('[')) continue;
    // These stand there as another choice, or need a file.
    if (bare != line && (name == "url" || name == "token-file")) continue;
    uncommented += bare != line ? 1 : 0;
    all += bare + "\n";
  }
  EXPECT_GE(uncommented, 10U) << all;
  EXPECT_NO_THROW((void)config::parse_daemon_config(all, "all.toml", no_environment.data())) << all;
}

}  // namespace
}  // namespace postrider
