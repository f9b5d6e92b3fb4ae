// SPDX-License-Identifier: Apache-2.0
#include "postrider/transaction.hpp"

#include <exception>
#include <string>
#include <utility>

#include "core/what_of.hpp"
#include "core/without_prefix.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "postrider/log.hpp"
#include "storage/transaction_control.hpp"

namespace postrider {
namespace {

thread_local Tx* current_tx = nullptr;

/// Stands in once a transaction is over, so that its connection is free before any callback runs: a callback
/// may begin the next transaction, and SQLite has one writer only.
class EndedSession final : public detail::TxSession {
 public:
  explicit EndedSession(BackendKind kind) noexcept : kind_(kind) {}
  [[nodiscard]] BackendKind kind() const noexcept override { return kind_; }
  [[nodiscard]] bool active() const noexcept override { return false; }
  Rows execute(std::string_view /*sql*/, std::span<const Value> /*params*/) override {
    throw Error(ErrorCode::not_in_transaction, "cannot run a statement", "the transaction has ended");
  }
  void commit() override {}
  void rollback() noexcept override {}

 private:
  BackendKind kind_;
};

[[noreturn]] void throw_ended(std::string_view what) {
  throw Error(ErrorCode::not_in_transaction, what, "the transaction has ended", "begin a new one");
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return what_of(e);
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

/// Runs all of them; returns what went wrong, "; " between.
std::string run_all(std::vector<Transaction::Callback> callbacks) noexcept {
  std::string failures;
  for (Transaction::Callback& callback : callbacks) {
    try {
      callback();
    } catch (...) {
      if (!failures.empty()) failures += "; ";
      failures += message_of(std::current_exception());
    }
    callback = nullptr;  // what it captured goes before the next one runs
  }
  return failures;
}

}  // namespace

Tx::Tx(std::unique_ptr<detail::TxSession> session) noexcept : session_(std::move(session)) {}
Tx::Tx(Tx&&) noexcept = default;
Tx::~Tx() = default;

bool Tx::active() const noexcept {
  return session_ != nullptr && session_->active();
}

BackendKind Tx::kind() const noexcept {
  return session_->kind();
}

Rows Tx::run(std::string_view sql, std::span<const Value> params) {
  // Without this check a statement after the end, or before the user's own BEGIN, would commit by itself.
  if (!active()) {
    throw Error(ErrorCode::not_in_transaction, "cannot run a statement", "the transaction is not active",
                adopted() ? "BEGIN on your connection first" : "begin a new one");
  }
  if (!adopted()) check_control(sql);
  return session_->execute(sql, params);
}

void Tx::check_control(std::string_view sql) {
  switch (transaction_control(session_->kind(), sql)) {
    case TransactionControl::none:
      return;
    case TransactionControl::ends:
      // Behind our back, rows would be rolled back whose events are then delivered, or committed although
      // their transaction fails later.
      throw Error(
          ErrorCode::invalid_argument, cannot_run(sql),
          "it would end the transaction behind its object's back",
          "call commit() or rollback() of the transaction; SAVEPOINT, RELEASE and ROLLBACK TO are allowed");
    case TransactionControl::undoes:
    case TransactionControl::hides:
      if (partial_rollbacks_ == nullptr) partial_rollbacks_ = std::make_shared<detail::PartialRollbacks>();
      ++partial_rollbacks_->count;
  }
}

Transaction::Transaction(std::unique_ptr<detail::TxSession> session) noexcept : Tx(std::move(session)) {}

Transaction::Transaction(Transaction&& other) noexcept
    : Tx(std::move(other)),
      after_commit_(std::move(other.after_commit_)),
      after_rollback_(std::move(other.after_rollback_)),
      ended_(std::exchange(other.ended_, true)) {}

Transaction::~Transaction() {
  if (ended_) return;
  session_->rollback();
  session_.reset();
  const std::string failures = run_all(std::move(after_rollback_));
  // A destructor cannot throw, so this is the one place where a callback's failure is told rather than
  // thrown.
  if (!failures.empty()) {
    log_to_stderr()(LogLevel::error, "postrider: a callback after the rollback failed: " + failures);
  }
}

void Transaction::after_commit(Callback callback) {
  if (ended_) throw_ended("cannot add an after-commit callback");
  after_commit_.push_back(std::move(callback));
}

void Transaction::after_rollback(Callback callback) {
  if (ended_) throw_ended("cannot add an after-rollback callback");
  after_rollback_.push_back(std::move(callback));
}

void Transaction::after_doubt(Callback callback) {
  if (ended_) throw_ended("cannot add an after-doubt callback");
  after_doubt_.push_back(std::move(callback));
}

void Transaction::commit() {
  if (ended_) throw_ended("cannot commit");
  // Made before COMMIT: nothing may fail between it and the hooks.
  auto over = std::make_unique<EndedSession>(session_->kind());
  ended_ = true;
  std::exception_ptr failure;
  bool in_doubt = false;
  try {
    session_->commit();
  } catch (const Error& e) {
    failure = std::current_exception();
    in_doubt = e.in_doubt();
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure != nullptr) session_->rollback();
  session_ = std::move(over);

  if (failure == nullptr) {
    after_rollback_.clear();
    after_doubt_.clear();
    const std::string failures = run_all(std::move(after_commit_));
    if (failures.empty()) return;
    throw Error(ErrorCode::hook_failed, "the transaction is committed, but a callback after it failed",
                failures, "do not repeat the transaction");
  }
  after_commit_.clear();
  std::string failures;
  if (in_doubt) {
    (void)run_all(std::move(after_doubt_));
  } else {
    failures = run_all(std::move(after_rollback_));
  }
  after_rollback_.clear();
  after_doubt_.clear();
  if (failures.empty()) std::rethrow_exception(failure);
  try {
    std::rethrow_exception(failure);
  } catch (const Error& e) {
    throw Error(e.code(),
                {.sqlstate = e.sqlstate(),
                 .retryable = e.retryable(),
                 .in_doubt = false,
                 .connection_lost = e.connection_lost()},
                std::string(without_prefix(e.what())) +
                    "; a callback after the rollback failed as well: " + failures);
  }
}

void Transaction::rollback() {
  if (ended_) return;
  auto over = std::make_unique<EndedSession>(session_->kind());
  ended_ = true;
  session_->rollback();
  session_ = std::move(over);
  after_commit_.clear();
  after_doubt_.clear();
  const std::string failures = run_all(std::move(after_rollback_));
  if (!failures.empty()) {
    throw Error(ErrorCode::hook_failed, "the transaction is rolled back, but a callback after it failed",
                failures);
  }
}

const std::shared_ptr<detail::PartialRollbacks>& Transaction::partial_rollbacks() {
  if (partial_rollbacks_ == nullptr) partial_rollbacks_ = std::make_shared<detail::PartialRollbacks>();
  return partial_rollbacks_;
}

Tx* TxContext::current() noexcept {
  return current_tx;
}

TxScope::TxScope(Tx& tx) noexcept : previous_(std::exchange(current_tx, &tx)) {}
TxScope::~TxScope() {
  current_tx = previous_;
}

}  // namespace postrider
