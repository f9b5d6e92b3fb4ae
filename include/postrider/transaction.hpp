// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "postrider/detail/tx_session.hpp"
#include "postrider/value.hpp"

namespace postrider {

/// A database transaction to publish in. Used by one thread at a time.
///
/// There are two kinds: `Transaction` from `Storage::begin`, which you commit through us, and `AdoptedTx`
/// around a transaction of your own driver, which you go on committing yourself.
class Tx {
 public:
  Tx(Tx&&) noexcept;
  Tx& operator=(Tx&&) noexcept = delete;
  virtual ~Tx();

  [[nodiscard]] bool active() const noexcept;
  [[nodiscard]] BackendKind kind() const noexcept;
  /// True when somebody else commits this transaction, so that no callback can follow its end.
  [[nodiscard]] virtual bool adopted() const noexcept = 0;

  /// Runs one statement. Parameters are bound, never pasted: write `?` for each (on PostgreSQL `$1`, `$2` …
  /// work as well; if the statement has any `$1`, question marks are left alone).
  ///
  /// A `Transaction` refuses statements that end it or begin another (COMMIT, ROLLBACK, BEGIN, …; on MariaDB
  /// SET autocommit and LOCK TABLES too) with Error(invalid_argument). Savepoints may be used: events
  /// published after a savepoint that is rolled back to are never delivered.
  template <class... Args>
  Rows execute(std::string_view sql, const Args&... args) {
    if constexpr (sizeof...(args) == 0) {
      return run(sql, {});
    } else {
      const std::array<Value, sizeof...(args)> values{Value(args)...};
      return run(sql, values);
    }
  }
  Rows run(std::string_view sql, std::span<const Value> params);

  [[nodiscard]] detail::TxSession& session() noexcept { return *session_; }

 protected:
  explicit Tx(std::unique_ptr<detail::TxSession> session) noexcept;
  std::unique_ptr<detail::TxSession> session_;
  std::shared_ptr<detail::PartialRollbacks> partial_rollbacks_;  // made when first needed

 private:
  void check_control(std::string_view sql);
};

/// A transaction that this library began. Rolls back when destroyed without `commit`.
class Transaction final : public Tx {
 public:
  using Callback = std::function<void()>;

  explicit Transaction(std::unique_ptr<detail::TxSession> session) noexcept;
  Transaction(Transaction&&) noexcept;
  ~Transaction() override;

  [[nodiscard]] bool adopted() const noexcept override { return false; }

  /// Runs after a successful commit, on the committing thread, in order of registration. Throws
  /// Error(not_in_transaction) when the transaction has ended.
  void after_commit(Callback callback);
  /// Runs after a rollback, also an implied one (destructor, failed commit). Not after a commit in doubt.
  void after_rollback(Callback callback);
  /// Runs after a commit whose outcome is unknown. What it throws is dropped: `commit` throws already.
  void after_doubt(Callback callback);

  /// Commits, then runs every after-commit callback, also when one throws. Then throws Error(hook_failed)
  /// carrying all their messages: the transaction itself *is* committed, don't repeat it. If COMMIT itself
  /// fails, the after-rollback callbacks run and the failure is thrown; if its outcome is unknown
  /// (`in_doubt()`), neither kind runs, but the after-doubt callbacks do: whatever was committed is found by
  /// the pollers.
  void commit();
  /// Rolls back and runs the after-rollback callbacks; does nothing when the transaction has ended.
  void rollback();

  /// For those who remember what they wrote, to ask in an after-commit callback whether it is still there.
  [[nodiscard]] const std::shared_ptr<detail::PartialRollbacks>& partial_rollbacks();

 private:
  std::vector<Callback> after_commit_;
  std::vector<Callback> after_rollback_;
  std::vector<Callback> after_doubt_;
  bool ended_ = false;
};

/// Your own transaction, lent to us: see `postgres::adopt`, `sqlite::adopt`, `mariadb::adopt`, `pqxx_adopt`.
/// Never commits or rolls back. Publishing through it returns a `Staged`; call `Staged::committed()` after
/// your commit for immediate delivery.
class AdoptedTx final : public Tx {
 public:
  explicit AdoptedTx(std::unique_ptr<detail::TxSession> session) noexcept : Tx(std::move(session)) {}
  [[nodiscard]] bool adopted() const noexcept override { return true; }
};

/// The current transaction of this thread, for code that cannot pass one along. Scopes nest; the innermost
/// counts.
///
///     TxScope scope{tx};
///     deep_inside();        // calls outbox.publish(event)
class TxContext {
 public:
  /// The innermost transaction bound on this thread, or null.
  [[nodiscard]] static Tx* current() noexcept;
};

class TxScope {
 public:
  explicit TxScope(Tx& tx) noexcept;
  ~TxScope();
  TxScope(const TxScope&) = delete;
  TxScope& operator=(const TxScope&) = delete;

 private:
  Tx* previous_;
};

}  // namespace postrider
