// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backends/postgres/errors.hpp"
#include "backends/postgres/wire.hpp"
#include "postrider/log.hpp"
#include "postrider/value.hpp"
#include "storage/pool.hpp"

namespace postrider::postgres {

/// What all connections of one storage share. Outlives them.
struct ConnectionContext {
  std::string url{};
  std::string name{};  ///< without the password
  Duration connect_timeout = std::chrono::seconds{5};
  Duration io_timeout = std::chrono::seconds{30};  ///< as StorageOptions::io_timeout
  LogCallback log{};
  /// Set once, when a transaction-mode pooler showed itself: from then on no statement is prepared by name.
  std::atomic<bool> unnamed_statements{false};

  void use_unnamed_statements(std::string_view reason);
};

/// One of our own statements. Parameters and results are binary.
struct Statement {
  /// Prepared where it is first used, or (for what needs no planning) sent as text each time, so that a
  /// pooler that moves us about can at worst lose a statement of our own, never a user's COMMIT.
  enum class Use { prepared, plain };
  explicit Statement(std::string text, Use how = Use::prepared);

  std::string sql;
  Use use;
  /// Made from the text, so that the same name never means two things, whoever shares a server connection
  /// with us.
  std::string name;
};

extern const Statement begin_statement;
/// For our own work: READ COMMITTED whatever the server's default is, because claims rely on its re-checks.
extern const Statement begin_worker_statement;
extern const Statement commit_statement;
extern const Statement rollback_statement;
/// Planner settings for our own work, for this transaction only: each hot statement has one right plan, an
/// index scan, and a plan made while the table was empty must be that one too. Sent within the transaction
/// instead of as startup options, because users' transactions run on the same connections and need the
/// planner untouched, and because poolers refuse or lose startup options. It also bounds the time that a lock
/// is waited for (then Error(contention)), because what waits for one row holds up many. Its last column
/// tells the time.
extern const Statement settings_statement;
inline constexpr int settings_clock_column = 7;

/// A connection of our own. Used by one thread at a time.
class Connection final : public PooledConnection {
 public:
  /// Connects; throws Error(unavailable) with the reason, retryable.
  explicit Connection(ConnectionContext& context);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] bool usable() const noexcept override;
  [[nodiscard]] bool ping() noexcept override;
  /// Looks whether the server has closed the connection meanwhile, without asking it. False when it has.
  [[nodiscard]] bool alive() noexcept;

  [[nodiscard]] PGconn* native() const noexcept { return native_.get(); }
  [[nodiscard]] PGTransactionStatusType transaction_status() const noexcept {
    return PQtransactionStatus(native_.get());
  }
  /// How long the server may be silent from now on while an answer is due; zero: for ever. Returns what held
  /// before.
  Duration set_patience(Duration patience) noexcept { return std::exchange(patience_, patience); }
  /// Sends what waits to be sent and takes in what comes, until libpq has a result to give (or a failure to
  /// tell). False when the server was silent for too long.
  [[nodiscard]] bool await_result() noexcept;
  /// Makes `usable` false: something is left on the wire that nobody will read.
  void mark_broken() noexcept { broken_ = true; }
  /// Whether the statement will run without being planned first.
  [[nodiscard]] bool has_prepared(const Statement& statement) const {
    return prepared_.contains(statement.name);
  }
  /// Ends a transaction that failed; marks the connection broken when even that fails.
  void rollback() noexcept;

 private:
  friend class Pipeline;
  struct Closer {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };

  ConnectionContext& context_;
  std::unique_ptr<PGconn, Closer> native_;
  std::unordered_set<std::string> prepared_;
  Duration patience_;
  bool broken_ = false;
};

/// Another patience for as long as this lives.
class Patience {
 public:
  Patience(Connection& connection, Duration patience) noexcept
      : connection_(connection), before_(connection.set_patience(patience)) {}
  ~Patience() { (void)connection_.set_patience(before_); }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  Connection& connection_;
  const Duration before_;
};

/// Several statements in one round trip. Sending copies the parameters, so their memory is free again after
/// each `send`.
class Pipeline {
 public:
  /// `what` begins the message of any error: "cannot claim outbox events". Must outlive the pipeline.
  Pipeline(Connection& connection, std::string_view what);
  /// Marks the connection broken unless `finish` ran.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  void send(const Statement& statement, const Params& params = {});
  /// A user's statement: text parameters whose types the server infers, text results, never prepared.
  void send_text(const std::string& sql, std::span<const Value> params);
  /// The same for a statement of ours that is to be prepared. Must outlive `finish`; its parameters have the
  /// same types each time.
  void send_text(const Statement& statement, std::span<const Value> params);
  /// COMMIT. If the connection breaks from here on, the error is in doubt, unless `harmless` says that
  /// repeating is safe.
  void send_commit(bool harmless);

  /// Waits for all results, in the order of sending. Throws for the first that failed; the transaction then
  /// needs a rollback.
  std::vector<Result> finish();

 private:
  struct Expected {
    const Statement* prepares;  // null: an execution
    bool commits = false;
  };
  /// As libpq wants it.
  struct Native {
    int count;
    const Oid* types;  // null: the server infers them
    const char* const* values;
    const int* lengths;
    const int* formats;
    int result_format;
  };
  void send_native(const Statement& statement, const Native& params);
  void check_sent(int sent);
  [[noreturn]] void fail(const PGresult* result, bool before_commit);
  [[noreturn]] void fail_silent(bool certain);

  Connection& connection_;
  std::string_view what_;
  std::vector<Expected> expected_;
  bool doubtful_commit_ = false;
  bool finished_ = false;
};

/// Text parameters for statements of users, on our connections and on theirs.
class TextParams {
 public:
  explicit TextParams(std::span<const Value> values);

  [[nodiscard]] int count() const noexcept { return static_cast<int>(values_.size()); }
  [[nodiscard]] const Oid* types() const noexcept { return types_.data(); }
  [[nodiscard]] const char* const* values() const noexcept { return values_.data(); }
  [[nodiscard]] const int* lengths() const noexcept { return lengths_.data(); }
  [[nodiscard]] const int* formats() const noexcept { return formats_.data(); }

 private:
  std::vector<std::string> owned_;
  std::vector<Oid> types_;
  std::vector<const char*> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

/// Rows of nullable text from a result in text format.
[[nodiscard]] Rows to_rows(const Result& result);

}  // namespace postrider::postgres
