// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/crash_run.hpp"

namespace postrider::test {

/// A migrated database per test, on which a child program lives and dies. It stays where it is after a
/// failure.
class CrashTest : public ::testing::TestWithParam<BackendKind> {
 protected:
  /// `program` is the name of the child.
  explicit CrashTest(std::string program) : program_(std::move(program)) {}

  void SetUp() override {
    if (!CrashDatabase::available(GetParam())) GTEST_SKIP() << "no server. Hint: scripts/with-servers";
    database_.emplace(GetParam());
    storage_ = database_->open();
    storage_->migrate();
    for (const auto& [name, columns] : tables()) run("create table " + table(name) + " (" + columns + ")");
  }
  void TearDown() override {
    if (!database_) return;
    if (HasFailure()) {
      database_->keep();
      return;
    }
    for (const auto& [name, columns] : tables()) run("drop table " + table(name));
  }
  /// The test's own, by name, with their columns.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> tables() const { return {}; }

  [[nodiscard]] std::string table(const std::string& name) const {
    return database_->schema() + (GetParam() == BackendKind::postgres ? "." : "_") + name;
  }
  /// In a transaction of its own.
  void run(const std::string& sql) {
    Transaction tx = storage_->begin();
    tx.execute(sql);
    tx.commit();
  }
  /// The one number that a query is about.
  std::int64_t number(const std::string& sql) {
    Transaction tx = storage_->begin();
    return tx.execute(sql).integer(0, 0);
  }
  /// Starts the child: its arguments are the database's URL, its schema, and these.
  [[nodiscard]] std::unique_ptr<ChildProcess> start(const std::vector<std::string>& arguments,
                                                    const std::string& failpoint = {}) const {
    std::vector<std::string> argv{program_, database_->url(), database_->schema()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    ChildProcess::Environment environment;
    if (!failpoint.empty()) environment.emplace_back("POSTRIDER_FAILPOINT", failpoint);
    return std::make_unique<ChildProcess>(argv, environment);
  }
  /// The child dies at this failpoint.
  void killed(const std::string& argument, const std::string& failpoint) const {
    const auto end = start({argument}, failpoint)->wait(std::chrono::seconds{90});
    ASSERT_TRUE(end.has_value()) << failpoint;
    EXPECT_TRUE(end->killed()) << failpoint << ": " << end->text();
  }
  /// The child comes to its end.
  void done(const std::string& argument) const {
    const auto end = start({argument})->wait(std::chrono::seconds{90});
    ASSERT_TRUE(end && end->ok());
  }
  /// `<backend>` in a failpoint's name stands for this one.
  [[nodiscard]] std::string point(std::string name) const {
    if (name.starts_with('<')) name.replace(0, name.find('>') + 1, to_string(GetParam()));
    return name;
  }

  std::optional<CrashDatabase> database_;
  std::unique_ptr<Storage> storage_;

 private:
  const std::string program_;
};

}  // namespace postrider::test

#define POSTRIDER_FOR_EACH_CRASH_BACKEND(suite)                                    \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, ::testing::ValuesIn(crash_backends()), \
                           [](const auto& chosen) { return std::string(to_string(chosen.param)); })
