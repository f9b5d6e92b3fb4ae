// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/connection.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "backends/sqlite/errors.hpp"
#include "core/wording.hpp"
#include "storage/placeholders.hpp"

namespace postrider::sqlite {
namespace {

constexpr std::size_t cache_size = 64;
// SQLITE_STATIC without the C cast: what is bound lives until the statement is reset.
constexpr sqlite3_destructor_type borrowed = nullptr;

int to_millis(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

/// An empty view may have no address, and SQLite takes a null pointer for NULL.
const char* address(std::string_view bytes) {
  return bytes.data() == nullptr ? "" : bytes.data();
}

}  // namespace

// ---- Statement

Statement::Statement(Statement&& other) noexcept
    : connection_(other.connection_),
      statement_(std::exchange(other.statement_, nullptr)),
      cached_(other.cached_) {}

Statement::~Statement() {
  if (statement_ == nullptr) return;
  if (!cached_) {
    sqlite3_finalize(statement_);
    return;
  }
  reset();
  connection_->give_back(statement_);
}

void Statement::bind(int index, const Value& value) {
  struct Binder {
    sqlite3_stmt* statement;
    int index;
    int operator()(std::monostate) const { return sqlite3_bind_null(statement, index); }
    int operator()(std::int64_t v) const { return sqlite3_bind_int64(statement, index, v); }
    int operator()(double v) const { return sqlite3_bind_double(statement, index, v); }
    int operator()(std::string_view v) const {
      return sqlite3_bind_text64(statement, index, address(v), v.size(), borrowed, SQLITE_UTF8);
    }
    int operator()(Blob v) const {
      return sqlite3_bind_blob64(statement, index, address(v.bytes), v.bytes.size(), borrowed);
    }
  };
  if (std::visit(Binder{statement_, index}, value.get()) != SQLITE_OK) {
    throw connection_->failure("cannot bind parameter " + std::to_string(index));
  }
}

void Statement::bind_all(std::span<const Value> values) {
  int index = 0;
  for (const Value& value : values) bind(++index, value);
}

int Statement::try_step() {
  const int code = sqlite3_step(statement_);
  return code == SQLITE_ROW || code == SQLITE_DONE ? code : sqlite3_extended_errcode(connection_->db_);
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  throw connection_->failure(cannot_run(sqlite3_sql(statement_)));
}

std::int64_t Statement::run() {
  // sqlite3_changes keeps its old value over statements that change no rows at all, such as CREATE TABLE.
  const int before = sqlite3_total_changes(connection_->db_);
  while (step()) {
  }
  return sqlite3_total_changes(connection_->db_) == before ? 0 : sqlite3_changes(connection_->db_);
}

void Statement::reset() noexcept {
  sqlite3_reset(statement_);  // repeats the error of the last step, which was thrown there
  sqlite3_clear_bindings(statement_);
}

bool Statement::is_null(int column) const noexcept {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
std::int64_t Statement::integer(int column) const noexcept {
  return sqlite3_column_int64(statement_, column);
}

std::string_view Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::string_view Statement::blob(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

int Statement::columns() const noexcept {
  return sqlite3_column_count(statement_);
}
int Statement::parameters() const noexcept {
  return sqlite3_bind_parameter_count(statement_);
}

Rows::Cell Statement::cell(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_NULL:
      return std::nullopt;
    case SQLITE_BLOB:
      return std::string(blob(column));
    default:
      return std::string(text(column));
  }
}

// ---- Connection

Connection::Connection(const ConnectionOptions& options) {
  try {
    open(options);
  } catch (...) {
    close();
    throw;
  }
}

Connection::~Connection() {
  close();
}

void Connection::close() noexcept {
  for (const Cached& cached : cache_) sqlite3_finalize(cached.statement);
  cache_.clear();
  if (owned_) sqlite3_close_v2(db_);
  db_ = nullptr;
}

void Connection::open(const ConnectionOptions& options) {
  const std::string& path = options.path;  // none that begins with "file:", which some builds take for a URI
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  if (!options.read_only) flags |= SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path.c_str(), &db_, flags, nullptr);
  if (code != SQLITE_OK) {
    throw to_open_error(options.name, path, db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_), code,
                        db_ == nullptr ? ENOMEM : sqlite3_system_errno(db_));
  }
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_timeout(db_, to_millis(options.busy_timeout));
  if (sqlite3_db_readonly(db_, "main") == 1) {
    throw to_open_error(options.name, path, "the file may only be read", SQLITE_CANTOPEN, 0);
  }
  try {
    enter_wal(options);
    full_sync_ = options.full_sync;
    run(full_sync_ ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
    if (options.read_only) run("PRAGMA query_only=1");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unsupported || error.code() == ErrorCode::storage_full) throw;
    throw to_open_error(options.name, path, sqlite3_errmsg(db_), sqlite3_extended_errcode(db_),
                        sqlite3_system_errno(db_));
  }
}

void Connection::enter_wal(const ConnectionOptions& options) {
  // Changing the mode needs the file alone for a moment, and SQLite does not wait for that: several programs
  // that open a new file at once would fail. Real time, because the other side is another program.
  const auto deadline = std::chrono::steady_clock::now() + options.busy_timeout;
  for (;;) {
    {
      Statement pragma = prepare("PRAGMA journal_mode=WAL");
      const int code = pragma.try_step();
      if (code == SQLITE_ROW) {
        if (pragma.text(0) == "wal") return;
        throw Error(ErrorCode::unsupported, "cannot open " + options.name,
                    "its journal mode stays '" + std::string(pragma.text(0)) + "', WAL is needed",
                    "put the file on a local disk: network file systems have no shared memory");
      }
      if ((code & 0xff) != SQLITE_BUSY || std::chrono::steady_clock::now() >= deadline) {
        throw failure("cannot open " + options.name);
      }
    }
    sqlite3_sleep(2);
  }
}

Statement Connection::prepare(std::string_view sql) {
  if (owned_) {
    const auto found = std::find_if(cache_.begin(), cache_.end(),
                                    [&](const Cached& c) { return !c.in_use && c.sql == sql; });
    if (found != cache_.end()) {
      found->in_use = true;
      cache_.splice(cache_.begin(), cache_, found);
      return {*this, found->statement, true};
    }
  }
  sqlite3_stmt* statement = nullptr;
  const char* tail = nullptr;
  const unsigned flags = owned_ ? SQLITE_PREPARE_PERSISTENT : 0;
  const int code =
      sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), flags, &statement, &tail);
  if (code != SQLITE_OK) throw failure(cannot_run(sql));
  Statement prepared(*this, statement, false);
  const std::string_view rest = sql.substr(static_cast<std::size_t>(tail - sql.data()));
  if (statement == nullptr || rest.find_first_not_of(" \t\r\n;") != std::string_view::npos) {
    throw Error(ErrorCode::invalid_argument, cannot_run(sql),
                statement == nullptr ? "it is empty" : "it is more than one statement");
  }
  if (!owned_) return prepared;
  if (cache_.size() >= cache_size) {
    const auto oldest =
        std::find_if(cache_.rbegin(), cache_.rend(), [](const Cached& c) { return !c.in_use; });
    if (oldest == cache_.rend()) return prepared;
    sqlite3_finalize(oldest->statement);
    cache_.erase(std::next(oldest).base());
  }
  cache_.push_front({std::string(sql), statement, true});
  prepared.cached_ = true;
  return prepared;
}

void Connection::give_back(sqlite3_stmt* statement) noexcept {
  const auto found =
      std::find_if(cache_.begin(), cache_.end(), [&](const Cached& c) { return c.statement == statement; });
  found->in_use = false;
}

Rows Connection::execute(std::string_view sql, std::span<const Value> params) {
  Statement statement = prepare(sql);
  check_placeholders(sql, static_cast<std::size_t>(statement.parameters()), params.size());
  statement.bind_all(params);
  Rows result;
  const int before = sqlite3_total_changes(db_);
  while (statement.step()) {
    std::vector<Rows::Cell> row;
    row.reserve(static_cast<std::size_t>(statement.columns()));
    for (int column = 0; column < statement.columns(); ++column) row.push_back(statement.cell(column));
    result.rows.push_back(std::move(row));
  }
  if (sqlite3_total_changes(db_) != before) result.affected = sqlite3_changes(db_);
  return result;
}

void Connection::run(std::string_view sql) {
  prepare(sql).run();
}

void Connection::begin() {
  run("BEGIN IMMEDIATE");
}

void Connection::commit() {
  Statement statement = prepare("COMMIT");
  if (statement.try_step() == SQLITE_DONE) return;
  Error error = to_commit_error(db_, "cannot commit");
  broken_ = broken_ || error.connection_lost() || error.in_doubt();
  throw Error(error);
}

void Connection::rollback() noexcept {
  if (!in_transaction()) return;  // SQLite has rolled back by itself, as it does when the disk is full
  // A connection that cannot even roll back is closed, which rolls back.
  if (sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr) != SQLITE_OK && in_transaction())
    broken_ = true;
}

void Connection::flush_commits(bool flush) noexcept {
  if (!full_sync_) return;
  const char* const sql = flush ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL";
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK && flush) broken_ = true;
}

bool Connection::in_transaction() const noexcept {
  return sqlite3_get_autocommit(db_) == 0;
}

bool Connection::ping() noexcept {
  return sqlite3_exec(db_, "SELECT 1 FROM sqlite_master LIMIT 1", nullptr, nullptr, nullptr) == SQLITE_OK;
}

void Connection::require_file() const {
  int moved = 0;
  // One call of stat(); a database in memory does not know the question.
  if (sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved == 0) return;
  throw Error(ErrorCode::unavailable, {.retryable = true}, "cannot use " + std::string(file()),
              "its file was removed or replaced while it was in use: what is written now would be lost",
              "put the file back; or, if it is meant to be a new one, start this program again");
}

std::string_view Connection::file() const noexcept {
  const char* name = sqlite3_db_filename(db_, "main");
  return name == nullptr ? std::string_view() : std::string_view(name);
}

Error Connection::failure(std::string_view what) {
  Error error = to_error(db_, what);
  broken_ = broken_ || error.connection_lost();
  return error;
}

}  // namespace postrider::sqlite
