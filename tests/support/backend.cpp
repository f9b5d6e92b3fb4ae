// SPDX-License-Identifier: Apache-2.0
#include "support/backend.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <random>

#include "postrider/error.hpp"
#include "postrider/open.hpp"

namespace postrider::test {
namespace {

const char* server_url(std::string_view backend) {
  return std::getenv(backend == "postgres" ? "POSTRIDER_TEST_POSTGRES" : "POSTRIDER_TEST_MARIADB");
}

/// Unlike that of any other test on the server, of this process or another.
std::string unique_schema() {
  static std::atomic<unsigned> count{0};
  static const unsigned run = std::random_device{}() % 1'000'000;
  return "t" + std::to_string(::getpid()) + "_" + std::to_string(run) + "_" + std::to_string(++count);
}

}  // namespace

std::vector<std::string> backend_names() {
  return {
      "sqlite",
#if defined(POSTRIDER_WITH_POSTGRES)
      "postgres",
#endif
#if defined(POSTRIDER_WITH_MARIADB)
      "mariadb",
#endif
  };
}

std::string why_unavailable(std::string_view backend) {
  if (backend == "sqlite" || server_url(backend) != nullptr) return {};
  return std::string(backend) + " is not here: its POSTRIDER_TEST_ variable is not set. " +
         "Hint: run it through: scripts/with-servers <command>";
}

bool skip_missing_servers() {
  const char* skip = std::getenv("POSTRIDER_SKIP_SERVERS");
  return skip != nullptr && std::string_view(skip) == "1";
}

TestDatabase::TestDatabase(std::string_view backend) : TestDatabase(backend, Options{}) {}

TestDatabase::TestDatabase(std::string_view backend, const Options& options) : backend_(backend) {
  options_.clock = options.clock;
  options_.pool_size = options.pool_size;
  if (backend_ == "sqlite") {
    url_ = "sqlite:" + dir_.file("test.db");
    options_.sqlite_full_sync = false;  // no test cuts the power, and syncing a thousand small files takes minutes
  } else {
    url_ = server_url(backend_);
    options_.schema = unique_schema();
  }
  storage_ = open_another();
  if (options.migrate) storage_->migrate();
}

TestDatabase::~TestDatabase() {
  storage_.reset();
  if (backend_ == "sqlite") return;  // goes with its directory
  try {
    remove();
  } catch (const std::exception& error) {
    std::cerr << "cannot remove schema " << options_.schema.str() << ": " << error.what() << '\n';
  }
}

void TestDatabase::remove() const {
  StorageOptions options = options_;
  options.clock = nullptr;  // the test's clock may stand still
  const std::unique_ptr<Storage> storage = open_another(options);
  storage->migrate({.target = 0});
  Transaction tx = storage->begin();
  if (backend_ == "postgres") {
    tx.execute("drop schema if exists " + options_.schema.str() + " cascade");
  } else {
    tx.execute("drop table if exists " + options_.schema.str() + "_schema_migrations");
  }
  tx.commit();
}

std::unique_ptr<Storage> TestDatabase::open_another(const StorageOptions& options) const { return open(url_, options); }

std::string TestDatabase::table(std::string_view name) const {
  return options_.schema.str() + (backend_ == "postgres" ? "." : "_") + std::string(name);
}

void BackendTest::SetUp() {
  const std::string reason = why_unavailable(backend());
  if (reason.empty()) return;
  if (skip_missing_servers()) GTEST_SKIP() << "SKIPPED, NOT TESTED: " << reason;
  GTEST_FAIL() << reason;
}

}  // namespace postrider::test
