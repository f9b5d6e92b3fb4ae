// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/json.hpp>
#include <cstdlib>
#include <fstream>

#include "app/cli/config_commands.hpp"
#include "support/temp_dir.hpp"

namespace postrider::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// What is said of a configuration with this URL.
std::string printed(const std::string& url, const std::string& more = {}, Format format = Format::table) {
  const test::TempDir folder;
  const std::string path = folder.file("p.toml");
  std::ofstream(path) << "[storage]\nurl = \"" << url << "\"\n" << more;
  ::testing::internal::CaptureStdout();
  constexpr std::array<const char*, 1> no_environment{nullptr};
  EXPECT_EQ(print_config_of(path, format, no_environment.data()), 0);
  return ::testing::internal::GetCapturedStdout();
}

TEST(ConfigPrint, ShowsTheDatabaseWithoutItsPassword) {
  EXPECT_THAT(printed("postgresql://ada:s3cret@db.example:5433/shop"),
              AllOf(HasSubstr("url = \"postgresql://ada@db.example:5433/shop\""), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(printed("postgresql://db.example/shop?user=ada&password=s3cret"),
              AllOf(HasSubstr("postgresql://ada@db.example"), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(printed("mariadb://ada:s3cret@db.example:3307/shop"),
              AllOf(HasSubstr("mariadb://ada@db.example:3307/shop"), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(printed("sqlite:/nowhere/at/all/shop.db"),
              HasSubstr("url = \"sqlite:/nowhere/at/all/shop.db\""))
      << "nothing is opened";
  EXPECT_THAT(printed("oracle://ada:s3cret@db/shop"),
              AllOf(HasSubstr("url = \"***\""), Not(HasSubstr("s3cret"))));
}

TEST(ConfigPrint, ShowsReferencesInsteadOfWhatTheyBring) {
  ::setenv("CONFIG_PRINT_CANARY", "s3cret", 1);  // NOLINT(concurrency-mt-unsafe)
  const std::string reference = "${env:CONFIG_PRINT_CANARY}";
  const std::string more = "[node]\nname = \"n-" + reference + "\"\n[server]\nallowed-hosts = [\"" +
                           reference + "\"]\n[sinks.f]\ntype = \"file\"\npath = \"/x/" + reference + "\"\n";
  for (const Format format : {Format::table, Format::json}) {
    const std::string text = printed("postgresql://ada:" + reference + "@db/shop", more, format);
    EXPECT_THAT(text, Not(HasSubstr("s3cret")));
    for (const std::string& shown : {"\"***" + reference + "***\"", "\"n-" + reference + "\"",
                                     "[\"" + reference + "\"]", "\"/x/" + reference + "\""}) {
      EXPECT_THAT(text, HasSubstr(shown));
    }
  }
}

TEST(ConfigPrint, SpeaksJson) {
  const boost::json::value all = boost::json::parse(printed("sqlite:a\\\"b.db", {}, Format::json).c_str());
  const auto find = [&](std::string_view table, std::string_view name) {
    for (const boost::json::value& one : all.as_array()) {
      if (one.at("table").as_string() == table && one.at("name").as_string() == name) return one;
    }
    return boost::json::value();
  };
  EXPECT_EQ(find("storage", "url"),
            (boost::json::value{
                {"table", "storage"}, {"name", "url"}, {"value", "sqlite:a\"b.db"}, {"origin", "file"}}));
  EXPECT_EQ(find("storage", "pool-size").at("value"), 16);
  EXPECT_EQ(find("storage", "migrate").at("value"), true);
  EXPECT_EQ(find("server", "allowed-hosts").at("value"), boost::json::array());
  EXPECT_EQ(find("server", "allowed-hosts").at("origin"), "default");
}

}  // namespace
}  // namespace postrider::cli
