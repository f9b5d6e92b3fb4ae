// SPDX-License-Identifier: Apache-2.0
#include "sandbox.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "harness.hpp"

namespace postrider::bench {

namespace {

/// On a real disk: the folder for temporary files is memory on many machines, and a sync would cost nothing
/// there.
std::filesystem::path scratch_folder() {
  if (const char* folder = std::getenv("POSTRIDER_BENCH_DIR")) return folder;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

}  // namespace

std::string numbers(BackendKind kind, std::size_t first, std::size_t last) {
  const std::string from = std::to_string(first);
  const std::string to = std::to_string(last);
  switch (kind) {
    case BackendKind::sqlite:
      return "(WITH RECURSIVE c(n) AS (SELECT " + from + " UNION ALL SELECT n + 1 FROM c WHERE n < " + to +
             ") SELECT n FROM c)";
    case BackendKind::postgres:
      return "(SELECT n FROM generate_series(" + from + ", " + to + ") AS g(n)) AS numbers";
    case BackendKind::mariadb:
      return "(SELECT seq AS n FROM seq_" + from + "_to_" + to + ") AS numbers";
  }
  return {};
}

std::string numbered_payload(BackendKind kind) {
  const std::string tail = payload_200(0).substr(payload_200(0).find(','));
  switch (kind) {
    case BackendKind::sqlite:
      return "'{\"order\":' || (100000000000 + n) || '" + tail + "'";
    case BackendKind::postgres:
      return "('{\"order\":' || (100000000000 + n)::text || '" + tail + "')::json";
    case BackendKind::mariadb:
      return "CONCAT('{\"order\":', 100000000000 + n, '" + tail + "')";
  }
  return {};
}

std::string numbered_id(BackendKind kind) {
  switch (kind) {
    case BackendKind::sqlite:
      return "'SEED' || printf('%022d', n)";
    case BackendKind::postgres:
      return "'SEED' || lpad(n::text, 22, '0')";
    case BackendKind::mariadb:
      return "CONCAT('SEED', LPAD(n, 22, '0'))";
  }
  return {};
}

std::string server_url(BackendKind kind) {
  if (kind == BackendKind::sqlite) throw std::logic_error("SQLite has no server");
  const bool postgres = kind == BackendKind::postgres;
#if !defined(POSTRIDER_WITH_POSTGRES)
  if (postgres) throw Unavailable("PostgreSQL is not compiled in");
#endif
#if !defined(POSTRIDER_WITH_MARIADB)
  if (!postgres) throw Unavailable("MariaDB is not compiled in");
#endif
  const char* variable = postgres ? "POSTRIDER_TEST_POSTGRES" : "POSTRIDER_TEST_MARIADB";
  const char* url = std::getenv(variable);
  if (url == nullptr || *url == '\0') {
    throw Unavailable(std::string(variable) +
                      " is not set. Hint: scripts/with-servers sets it, and so does make bench");
  }
  return url;
}

Sandbox::Sandbox(BackendKind kind, const std::string& schema, std::size_t pool_size)
    : kind_(kind), schema_(schema), table_(table("outbox_event")) {
  if (kind == BackendKind::sqlite) {
    file_ = scratch_file("db");
    url_ = "sqlite:" + file_.string();
  } else {
    url_ = server_url(kind);
  }
  storage_ = open(url_, {.pool_size = pool_size, .schema = schema});
  remove();
  storage_->migrate();
}

Sandbox::~Sandbox() {
  try {
    remove();
  } catch (const std::exception& error) {
    say("cannot clean up " + schema_ + ": " + error.what());
  }
  storage_.reset();
  if (kind_ == BackendKind::sqlite) {
    std::error_code ignored;
    for (const char* tail : {"", "-wal", "-shm"}) std::filesystem::remove(file_.string() + tail, ignored);
  }
}

void Sandbox::remove() {
  if (kind_ == BackendKind::sqlite) return;  // the file goes as a whole
  storage_->migrate({.target = 0});
  if (kind_ == BackendKind::postgres) run("DROP SCHEMA IF EXISTS " + schema_ + " CASCADE");
}

std::filesystem::path Sandbox::scratch_file(const std::string& ending) const {
  return scratch_folder() / (schema_ + "." + std::to_string(getpid()) + "." + ending);
}

std::string Sandbox::table(const std::string& name) const {
  return schema_ + (kind_ == BackendKind::postgres ? "." : "_") + name;
}

void Sandbox::run(const std::string& sql) {
  Transaction tx = storage_->begin();
  tx.execute(sql);
  tx.commit();
}

void Sandbox::clear() {
  if (kind_ == BackendKind::mariadb) {
    // TRUNCATE commits by itself there, which a transaction of ours refuses.
    storage_->migrate({.target = 0});
    storage_->migrate();
    return;
  }
  run((kind_ == BackendKind::sqlite ? "DELETE FROM " : "TRUNCATE TABLE ") + table_);
}

void Sandbox::seed(std::size_t rows) {
  // Transactions of moderate size: what is measured afterwards should not meet a giant write-ahead log.
  constexpr std::size_t per_transaction = 20'000;
  for (std::size_t left = rows; left > 0;) {
    const std::size_t count = std::min(left, per_transaction);
    run("INSERT INTO " + table_ + " (event_id, event_type, payload) SELECT " + numbered_id(kind_) +
        ", 'BenchEvent', " + numbered_payload(kind_) + " FROM " +
        numbers(kind_, seeded_ + 1, seeded_ + count));
    seeded_ += count;
    left -= count;
  }
  // Fresh statistics, as autovacuum would make them sooner or later.
  if (kind_ == BackendKind::postgres) run("ANALYZE " + table_);
}

std::int64_t Sandbox::number(const std::string& sql) {
  Transaction tx = storage_->begin();
  return tx.execute(sql).integer(0, 0);
}

std::int64_t Sandbox::count(const std::string& where) {
  return number("SELECT count(*) FROM " + table_ + " WHERE " + where);
}

void Sandbox::expect_all_done(std::size_t rows) {
  const auto done = count("status = 1");
  const auto others = count("status <> 1");
  if (done != static_cast<std::int64_t>(rows) || others != 0) {
    throw std::runtime_error(std::to_string(rows) + " events were published, " + std::to_string(done) +
                             " are DONE and " + std::to_string(others) + " are not");
  }
}

}  // namespace postrider::bench
