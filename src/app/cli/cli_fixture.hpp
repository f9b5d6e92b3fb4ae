// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "support/backend.hpp"
#include "support/child_process.hpp"
#include "support/places.hpp"
#include "support/temp_dir.hpp"

namespace postrider::cli {

/// The program as one runs it, to its end.
class CommandLine {
 public:
  struct Said {
    int code = -1;
    std::string out{};
    std::string err{};

    [[nodiscard]] boost::json::value json() const {
      boost::json::error_code error;
      boost::json::value value = boost::json::parse(out, error);
      EXPECT_FALSE(error) << "no JSON: " << out << err;
      return value;
    }
  };

  /// On top of the process's own.
  test::ChildProcess::Environment environment{};
  std::string folder{};  ///< where it is typed; empty: in the process's own

  [[nodiscard]] Said run(const std::vector<std::string>& arguments, const std::string& input = {}) const {
    const std::string errors = dir_.file("stderr");
    const std::string given = dir_.file("stdin");
    std::ofstream(given) << input;
    std::vector<std::string> argv{
        "/bin/sh", "-c",
        (folder.empty() ? "" : "cd " + folder + " && ") + "exec \"$0\" \"$@\" 2>" + errors + " <" + given,
        test::program_path()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    test::ChildProcess child(argv, environment);
    Said said;
    while (const auto line = child.read_line()) said.out += *line + "\n";
    const auto end = child.wait();
    if (end && end->exited) said.code = end->code;
    std::ifstream file(errors);
    said.err.assign(std::istreambuf_iterator<char>(file), {});
    return said;
  }

 private:
  test::TempDir dir_;
};

/// The program on a database of its own, which the test sees too.
class CliTest : public test::BackendTest {
 protected:
  using Said = CommandLine::Said;

  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend());
    line_.environment = {{"POSTRIDER_STORAGE_URL", database_->url()},
                         {"POSTRIDER_STORAGE_SCHEMA", database_->options().schema.str()}};
  }
  [[nodiscard]] Said run(const std::vector<std::string>& arguments, const std::string& input = {}) {
    return line_.run(arguments, input);
  }
  /// With -o json, and what it says.
  [[nodiscard]] boost::json::value json(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const Said said = run(arguments);
    return said.json();
  }
  void sql(const std::string& statement) {
    Transaction tx = database_->storage().begin();
    tx.execute(statement);
    tx.commit();
  }
  [[nodiscard]] std::string table(const char* name) const { return database_->table(name); }
  [[nodiscard]] Storage& storage() { return database_->storage(); }

  CommandLine line_;
  std::optional<test::TestDatabase> database_;
};

}  // namespace postrider::cli
