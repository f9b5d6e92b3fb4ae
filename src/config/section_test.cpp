// SPDX-License-Identifier: Apache-2.0
#include "config/section.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "postrider/error.hpp"
#include "support/temp_dir.hpp"

namespace postrider::config {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

struct Settings {
  std::string url = "sqlite:x.db";
  std::string password{};
  bool migrate = true;
  std::size_t pool_size = 16;
  int threshold = 3;
  Duration interval = 1s;
  std::optional<Duration> retention{};
  std::vector<std::string> tags{"a"};
  std::vector<std::string> keys{};
  int strategy = 0;
  std::map<std::string, std::string> properties{};
};

class SectionTest : public ::testing::Test {
 protected:
  Settings read(const std::string& text, std::vector<const char*> environment = {}) {
    environment.push_back(nullptr);
    Source source(ConfigFile::parse(text, "x.toml"), environment.data());
    Settings settings;
    constexpr std::array<std::pair<std::string_view, int>, 2> words{{{"global", 0}, {"balanced", 1}}};
    Section section(source, "storage");
    section.text("url", settings.url)
        .secret("password", settings.password)
        .flag("migrate", settings.migrate)
        .count("pool-size", settings.pool_size, 1, 1000)
        .number("threshold", settings.threshold, 0, 10)
        .time("interval-ms", settings.interval, 1ms, 1ms, 24h)
        .age("retention", settings.retention)
        .list("tags", settings.tags)
        .secrets("keys", settings.keys)
        .word<int>("strategy", settings.strategy, words)
        .rest("kafka.", settings.properties)
        .finish();
    given_ = section.given();
    source.finish();
    effective_.clear();
    for (const Effective& one : source.effective()) effective_ += one.name + "=" + one.value + "\n";
    return settings;
  }
  std::string refusal(const std::string& text, std::vector<const char*> environment = {}) {
    try {
      (void)read(text, std::move(environment));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "taken";
  }
  bool given_ = false;
  std::string effective_;
};

TEST_F(SectionTest, LeavesDefaultsAlone) {
  const Settings settings = read("");
  EXPECT_EQ(settings.url, "sqlite:x.db");
  EXPECT_THAT(settings.tags, ElementsAre("a"));
  EXPECT_FALSE(given_);
}

TEST_F(SectionTest, TakesEveryKind) {
  const Settings settings = read(R"([storage]
url = "postgresql://db"
password = "s3cret"
migrate = false
pool-size = 3
threshold = 0
interval-ms = 250
retention = "90d"
tags = ["x", "y"]
strategy = "balanced"
"kafka.linger.ms" = 5
)");
  EXPECT_TRUE(given_);
  EXPECT_EQ(settings.url, "postgresql://db");
  EXPECT_EQ(settings.password, "s3cret");
  EXPECT_FALSE(settings.migrate);
  EXPECT_EQ(settings.pool_size, 3U);
  EXPECT_EQ(settings.threshold, 0);
  EXPECT_EQ(settings.interval, 250ms);
  EXPECT_EQ(settings.retention, 24h * 90);
  EXPECT_THAT(settings.tags, ElementsAre("x", "y"));
  EXPECT_EQ(settings.strategy, 1);
  EXPECT_EQ(settings.properties.at("linger.ms"), "5");
  EXPECT_THAT(effective_, AllOf(HasSubstr("pool-size=3"), HasSubstr("tags=[\"x\", \"y\"]"),
                                HasSubstr("password=\"***\""), Not(HasSubstr("s3cret"))));
}

TEST_F(SectionTest, TheEnvironmentCountsMore) {
  const Settings settings = read("[storage]\npool-size = 3\ntags = [\"x\"]\n",
                                 {"POSTRIDER_STORAGE_POOL_SIZE=7", "POSTRIDER_STORAGE_TAGS=p, q",
                                  "POSTRIDER_CONFIG=/x", "POSTRIDER_OF_OTHERS=y", "POSTRIDERS=1"});
  EXPECT_EQ(settings.pool_size, 7U);
  EXPECT_THAT(settings.tags, ElementsAre("p", "q"));
}

TEST_F(SectionTest, ATextTakesFilesAndVariablesIn) {
  const test::TempDir folder;
  { std::ofstream(folder.file("secret")) << "pass\n"; }
  ::setenv("SECTION_TEST_USER", "me", 1);  // NOLINT(concurrency-mt-unsafe)
  const Settings settings =
      read("[storage]\nurl = \"db://${env:SECTION_TEST_USER}:${file:" + folder.file("secret") +
           "}@host\"\npassword = \"${file:" + folder.file("secret") + "}\"\n");
  EXPECT_EQ(settings.url, "db://me:pass@host");
  EXPECT_EQ(settings.password, "pass");
  EXPECT_THAT(refusal("[storage]\nurl = \"${env:SECTION_TEST_NOBODY}\"\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("SECTION_TEST_NOBODY' is not set")));
  EXPECT_THAT(refusal("[storage]\npassword = \"${file:/no/such}\"\n"),
              HasSubstr("'/no/such' cannot be read"));
  EXPECT_THAT(refusal("[storage]\nurl = \"${nonsense}\"\n"), HasSubstr("env:NAME}"));
  EXPECT_THAT(refusal("[storage]\nurl = \"${env:X\"\n"), HasSubstr("env:NAME}"));
}

TEST_F(SectionTest, ShowsReferencesAndNeverWhatTheyBring) {
  const test::TempDir folder;
  const std::string file = "${file:" + folder.file("canary") + "}";
  { std::ofstream(folder.file("canary")) << "CANARY\n"; }
  ::setenv("SECTION_TEST_CANARY", "CANARY", 1);  // NOLINT(concurrency-mt-unsafe)
  const Settings settings =
      read("[storage]\nurl = \"x/" + file + "\"\npassword = \"lit" + file +
           "eral${env:SECTION_TEST_CANARY}\"\ntags = [\"plain\", \"" + file + "\"]\nkeys = [\"literal\", \"" +
           file + "\"]\n\"kafka.sasl.password\" = \"" + file + "\"\n");
  EXPECT_EQ(settings.url, "x/CANARY");
  EXPECT_EQ(settings.password, "litCANARYeralCANARY");
  EXPECT_THAT(settings.tags, ElementsAre("plain", "CANARY"));
  EXPECT_THAT(settings.keys, ElementsAre("literal", "CANARY"));
  EXPECT_EQ(settings.properties.at("sasl.password"), "CANARY");
  EXPECT_THAT(effective_,
              AllOf(HasSubstr("url=\"x/" + file + "\"\n"),
                    HasSubstr("password=\"***" + file + "***${env:SECTION_TEST_CANARY}\"\n"),
                    HasSubstr("tags=[\"plain\", \"" + file + "\"]\n"),
                    HasSubstr("keys=[\"***\", \"" + file + "\"]\n"),
                    HasSubstr("kafka.sasl.password=\"" + file + "\"\n"), Not(HasSubstr("liter"))));

  (void)read("", {"POSTRIDER_STORAGE_TAGS=${env:SECTION_TEST_CANARY}", "POSTRIDER_STORAGE_PASSWORD=literal"});
  EXPECT_THAT(effective_,
              AllOf(HasSubstr("tags=[\"${env:SECTION_TEST_CANARY}\"]\n"), HasSubstr("password=\"***\"\n")));
}

TEST_F(SectionTest, AFolderIsNoSecret) {
  const test::TempDir folder;
  EXPECT_THAT(refusal("[storage]\npassword = \"${file:" + folder.file("") + "}\"\n"),
              HasSubstr("' cannot be read"));
  EXPECT_THAT(refusal("[storage]\npassword = \"${file:/dev/zero}\"\n"), HasSubstr("is larger than 64 KiB"));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal("[storage]\npassword = \"${file:" + folder.file("pipe") + "}\"\n"),
              HasSubstr("' cannot be read"))
      << "nobody writes into it";
}

TEST_F(SectionTest, RefusesWithTheLineAndTheNearestName) {
  EXPECT_THAT(refusal("[storage]\n\npool_size = 3\n"),
              AllOf(HasSubstr("x.toml, line 3"), EndsWith("did you mean pool-size?")));
  EXPECT_THAT(refusal("[storage]\npool-size = 0\n"),
              HasSubstr("line 2: storage.pool-size cannot be '0': it must be a whole number from 1 to 1000"));
  EXPECT_THAT(refusal("[storage]\npool-size = \"many\"\n"), HasSubstr("'many'"));
  EXPECT_THAT(refusal("[storage]\nmigrate = 1\n"), HasSubstr("true or false"));
  EXPECT_THAT(refusal("[storage]\nurl = 1\n"), HasSubstr("a text, in quotes"));
  EXPECT_THAT(refusal("[storage]\nstrategy = \"both\"\n"), HasSubstr("one of global balanced"));
  EXPECT_THAT(refusal("[storage]\nretention = \"soon\"\n"), HasSubstr("90d"));
  EXPECT_THAT(refusal("[storage]\ntags = [1]\n"), HasSubstr("a list of texts"));
  EXPECT_THAT(refusal("[storage]\npool-size = [1]\n"), HasSubstr("'pool-size' in [storage] is no list"));
  EXPECT_THAT(refusal("[storag]\n"),
              AllOf(HasSubstr("line 1: there is no table 'storag'"), EndsWith("did you mean storage?")));
  EXPECT_THAT(
      refusal("[storage]\npol-size = [1, 2]\n"),
      AllOf(HasSubstr("there is no option 'pol-size' in [storage]"), EndsWith("did you mean pool-size?")));
  EXPECT_THAT(refusal("[[storage]]\n"),
              EndsWith("line 1: [[storage]] is refused. Hint: write it as [storage]"));
  EXPECT_THAT(refusal("url = \"x\"\n"), HasSubstr("line 1: url stands outside"));
}

TEST_F(SectionTest, RefusesWhatTheEnvironmentGetsWrong) {
  EXPECT_THAT(refusal("", {"POSTRIDER_STORAGE_POOL_SIZE=x"}),
              HasSubstr("POSTRIDER_STORAGE_POOL_SIZE is refused"));
  EXPECT_THAT(refusal("", {"POSTRIDER_STORAGE_POLL_SIZE=1"}),
              EndsWith("did you mean POSTRIDER_STORAGE_POOL_SIZE?"));
}

TEST_F(SectionTest, NeverShowsASecretThatIsWrong) {
  EXPECT_THAT(refusal("[storage]\npassword = 12345\n"), Not(HasSubstr("12345")));
}

TEST(Source, FindsWhatIsBelowATable) {
  const std::array<const char*, 1> nothing{nullptr};
  Source source(ConfigFile::parse("[a.x]\n[a.y.deep]\n[[r]]\nk=1\n[[r]]\n[ab.z]\n", "x"), nothing.data());
  EXPECT_THAT(source.tables_below("a"), ElementsAre("x", "y"));
  EXPECT_EQ(source.elements_of("r"), 2U);
  EXPECT_EQ(source.elements_of("a"), 0U);
}

}  // namespace
}  // namespace postrider::config
