// SPDX-License-Identifier: Apache-2.0
// Configuration files of `postrider serve`, as people write them.
#include <cstdint>
#include <string>
#include <string_view>

#include "app/config/daemon_config.hpp"
#include "config/config_file.hpp"
#include "fuzz/require.hpp"
#include "postrider/error.hpp"

namespace postrider::config {
namespace {

using test::require;

constexpr std::string_view secret = "secret-from-outside";
constexpr const char* environment[] = {"PASSWORD=secret-from-outside", "POSTRIDER_RELAY_WORKERS=3", nullptr};

/// What is said to somebody whose file is refused.
void check_refusal(const Error& error, std::string_view name) {
  const std::string_view what = error.what();
  require(error.code() == ErrorCode::invalid_argument, "a file that is refused is an invalid argument");
  require(what.starts_with("postrider: "), "an error says whose it is");
  // What is missing has no line.
  require(what.find(name) != std::string_view::npos || what.find(" is refused") != std::string_view::npos,
          "an error names the file, the variable or the option");
  require(what.find(secret) == std::string_view::npos, "an error shows no secret");
}

void check_accepted(const ReadConfig& read, std::string_view text) {
  const std::string printed = print_config(read.effective);
  require(printed.find(secret) == std::string::npos, "what is printed shows no secret");
  try {
    (void)ConfigFile::parse(printed, "printed");
  } catch (const Error&) {
    require(false, "what is printed is TOML");
  }
  const ReadConfig again = parse_daemon_config(text, "fuzz.toml", environment);
  require(changed_options(read.effective, again.effective).empty(), "the same file means the same");
  require(again.config.relay.topics.size() == read.config.relay.topics.size(),
          "the same file has the same topics");
}

void run(std::string_view text) {
  // Files that a text refers to are somebody's else's, and some of them never end.
  if (text.find("file:") != std::string_view::npos) return;
  // The fuzzer learns the secret from the comparisons below; a file that has it in its own words shows its
  // own words.
  if (text.find(secret) != std::string_view::npos) return;
  try {
    const ConfigFile file = ConfigFile::parse(text, "fuzz.toml");
    unsigned line = 0;
    for (const ConfigValue& value : file.values()) {
      require(value.line > 0 && !value.name.empty(), "a value has a line and a name");
      line = value.line;
    }
    require(line <= text.size() + 1, "a line is within the file");
  } catch (const Error& error) {
    check_refusal(error, "fuzz.toml");
    return;
  }
  try {
    check_accepted(parse_daemon_config(text, "fuzz.toml", environment), text);
  } catch (const Error& error) {
    check_refusal(error, "fuzz.toml");
  }
}

}  // namespace
}  // namespace postrider::config

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  postrider::config::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
