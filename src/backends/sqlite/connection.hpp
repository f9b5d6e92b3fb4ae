// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "postrider/value.hpp"
#include "storage/pool.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace postrider::sqlite {

class Connection;

/// A prepared statement in use. Its end resets it, so that no read snapshot is held open. Text and blobs are
/// bound without a copy: they must live until the next `reset` or the end.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  void bind(int index, const Value& value);
  void bind_all(std::span<const Value> values);
  /// From the first on, in order.
  template <class... Args>
  Statement& with(const Args&... args) {
    int index = 0;
    (bind(++index, Value(args)), ...);
    return *this;
  }

  /// True while there is a row; throws what the database reports.
  bool step();
  /// The extended result code instead of an exception for a constraint that the caller wants to explain
  /// itself.
  [[nodiscard]] int try_step();
  /// Runs to the end; returns how many rows were changed.
  std::int64_t run();
  /// Ready to be bound and run again.
  void reset() noexcept;

  [[nodiscard]] bool is_null(int column) const noexcept;
  [[nodiscard]] std::int64_t integer(int column) const noexcept;
  /// Valid until the next step. Empty for NULL.
  [[nodiscard]] std::string_view text(int column) const;
  [[nodiscard]] std::string_view blob(int column) const;
  [[nodiscard]] int columns() const noexcept;
  [[nodiscard]] int parameters() const noexcept;
  [[nodiscard]] Rows::Cell cell(int column) const;

 private:
  friend class Connection;
  Statement(Connection& connection, sqlite3_stmt* statement, bool cached) noexcept
      : connection_(&connection), statement_(statement), cached_(cached) {}
  Connection* connection_;
  sqlite3_stmt* statement_;
  bool cached_;
};

struct ConnectionOptions {
  std::string name{};  ///< for messages
  std::string path{};
  bool full_sync = true;
  bool read_only = false;  ///< a reader: refuses to write
  Duration busy_timeout{};
};

/// A connection to one file: opened and closed here, or lent by the user. Used by one thread at a time.
class Connection final : public PooledConnection {
 public:
  /// Opens in WAL mode; the writer creates the file. Throws Error that says what stands in the way.
  explicit Connection(const ConnectionOptions& options);
  /// Lent: never closed, and no statement outlives the call that prepared it, so the user may close it at any
  /// time.
  explicit Connection(sqlite3* lent) noexcept : db_(lent), owned_(false) {}
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] Statement prepare(std::string_view sql);
  /// Prepares, binds, runs; all rows as text. Refuses a wrong number of parameters.
  Rows execute(std::string_view sql, std::span<const Value> params);
  /// For statements without parameters or result.
  void run(std::string_view sql);

  void begin();  ///< BEGIN IMMEDIATE: takes the write lock now, so that it cannot fail half-way
  void commit();
  void rollback() noexcept;  ///< does nothing outside a transaction
  [[nodiscard]] bool in_transaction() const noexcept;
  /// Whether commits are flushed to the disk, as the options say, or may be lost when the machine (not only
  /// the process) goes down. Outside transactions only.
  void flush_commits(bool flush) noexcept;

  [[nodiscard]] bool usable() const noexcept override { return !broken_; }
  [[nodiscard]] bool ping() noexcept override;
  /// Throws Error(unavailable) when somebody has removed or replaced the file meanwhile: what is written then
  /// is gone with the last connection, though SQLite says that it was committed.
  void require_file() const;
  /// The file's absolute path as SQLite knows it: tells whether two connections work on the same database.
  [[nodiscard]] std::string_view file() const noexcept;
  [[nodiscard]] sqlite3* native() const noexcept { return db_; }

  /// The last failure as Error; remembers when the connection should not be used again.
  [[nodiscard]] Error failure(std::string_view what);

 private:
  friend class Statement;
  struct Cached {
    std::string sql;
    sqlite3_stmt* statement;
    bool in_use;
  };
  void open(const ConnectionOptions& options);
  void enter_wal(const ConnectionOptions& options);
  void give_back(sqlite3_stmt* statement) noexcept;
  void close() noexcept;

  sqlite3* db_ = nullptr;
  bool owned_ = true;
  bool full_sync_ = false;
  bool broken_ = false;
  std::list<Cached> cache_;  // most recently used first
};

/// A transaction on a connection of ours; rolled back unless committed.
class WriteTransaction {
 public:
  explicit WriteTransaction(Connection& connection) : connection_(connection) { connection_.begin(); }
  ~WriteTransaction() { connection_.rollback(); }
  WriteTransaction(const WriteTransaction&) = delete;
  WriteTransaction& operator=(const WriteTransaction&) = delete;
  void commit() { connection_.commit(); }

 private:
  Connection& connection_;
};

/// One that writes nothing but leases. Nobody waits for the disk because of those: whoever held a lease is
/// gone when the machine goes down, and the next commit that is flushed takes them along.
class LeaseTransaction {
 public:
  explicit LeaseTransaction(Connection& connection) : unflushed_(connection), transaction_(connection) {}
  void commit() { transaction_.commit(); }

 private:
  struct Unflushed {
    explicit Unflushed(Connection& the_connection) : connection(the_connection) {
      connection.flush_commits(false);
    }
    ~Unflushed() { connection.flush_commits(true); }
    Unflushed(const Unflushed&) = delete;
    Unflushed& operator=(const Unflushed&) = delete;
    Connection& connection;
  };
  Unflushed unflushed_;  // first, so that it ends last
  WriteTransaction transaction_;
};

/// What the pool has lent.
[[nodiscard]] inline Connection& connection_of(const ConnectionPool::Lease& lease) {
  return static_cast<Connection&>(*lease);
}

}  // namespace postrider::sqlite
