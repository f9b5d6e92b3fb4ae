// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/session.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "core/failpoint.hpp"
#include "postrider/error.hpp"
#include "postrider/mariadb.hpp"
#include "storage/transaction_control.hpp"

namespace postrider::mariadb {
namespace {

bool begins_with(std::string_view sql, std::string_view word) {
  sql.remove_prefix(std::min(sql.find_first_not_of(" \t\r\n("), sql.size()));
  return sql.size() >= word.size() && std::equal(word.begin(), word.end(), sql.begin(), [](char a, char b) {
           return a == static_cast<char>(std::toupper(static_cast<unsigned char>(b)));
         });
}

/// Statements of these kinds leave nothing behind in the session. Others (SET, USE, LOCK, CREATE TEMPORARY …)
/// may.
bool leaves_session_alone(std::string_view sql) {
  constexpr std::array<std::string_view, 6> harmless{"SELECT", "INSERT",  "UPDATE",
                                                     "DELETE", "REPLACE", "WITH"};
  return std::any_of(harmless.begin(), harmless.end(),
                     [&](std::string_view word) { return begins_with(sql, word); });
}

/// Not in a transaction any more, though nobody asked us to end it.
Error ended_error(const Link& link) {
  const std::string& name = link.name();
  if (link.rolled_back()) {
    return Error(ErrorCode::contention, {.retryable = true}, "the transaction on " + name + " has ended",
                 "the server rolled it back after a deadlock or lock timeout",
                 "begin a new transaction and do its work again");
  }
  return Error(ErrorCode::not_in_transaction, "the transaction on " + name + " has ended",
               "one of its statements ended it (DDL commits by itself)",
               "keep DDL, and procedures that commit or roll back, out of transactions");
}

}  // namespace

OwnSession::OwnSession(ConnectionPool::Lease lease) noexcept
    : lease_(std::move(lease)), link_(&static_cast<Connection&>(*lease_).link()) {}

OwnSession::~OwnSession() {
  rollback();
}

bool OwnSession::active() const noexcept {
  return !ended_ && link_->in_transaction();
}

Rows OwnSession::execute(std::string_view sql, std::span<const Value> params) {
  // Without a transaction the statement would commit by itself.
  if (ended_)
    throw Error(ErrorCode::not_in_transaction, "cannot run a statement", "the transaction has ended");
  if (!active()) throw ended_error(*link_);
  if (!leaves_session_alone(sql)) state_changed_ = true;
  const bool first = link_->statements() == 0;
  Rows rows = link_->run_any(sql, params);
  // Work that was to be committed or rolled back with the rest is committed now: the caller must hear of it.
  // As the first statement of its transaction DDL does no harm.
  if (!first && !link_->in_transaction()) {
    ended_unseen_ = transaction_control(kind(), sql) != TransactionControl::none;
    throw ended_error(*link_);
  }
  return rows;
}

void OwnSession::commit() {
  if (ended_) throw Error(ErrorCode::not_in_transaction, "cannot commit", "the transaction has ended");
  if (!link_->alive()) {
    ended_ = true;
    give_back();
    throw Error(ErrorCode::unavailable, {.retryable = true, .connection_lost = true}, "cannot commit",
                "the connection broke before; the server has rolled the transaction back",
                "begin a new transaction and do its work again");
  }
  if (!link_->in_transaction()) {
    const Error error = ended_error(*link_);
    const bool committed = !link_->rolled_back() && !ended_unseen_;
    rollback();             // of nothing, or of what the server may have begun after a deadlock
    if (committed) return;  // by DDL; nothing was let through after it
    throw error;
  }
  failpoint("mariadb.commit.before");
  try {
    link_->commit();
  } catch (...) {
    rollback();
    throw;
  }
  ended_ = true;
  give_back();
  try {
    failpoint("mariadb.commit.after");
  } catch (const Error& error) {
    // Whatever fails here, the commit has happened: the caller must not take it for a rollback.
    throw Error(ErrorCode::unavailable, {.in_doubt = true}, "cannot commit", error.what());
  }
}

void OwnSession::rollback() noexcept {
  if (ended_) return;
  ended_ = true;
  try {
    if (link_->alive()) link_->rollback();
  } catch (const std::exception&) {
    // The server rolls back what a closed connection leaves open.
    state_changed_ = true;
  }
  give_back();
}

void OwnSession::give_back() noexcept {
  if (!lease_) return;
  if (state_changed_) lease_.discard();
  lease_ = {};
}

LentSession::LentSession(MYSQL* mysql) : link_(mysql, "the adopted connection", 8) {}

Rows LentSession::execute(std::string_view sql, std::span<const Value> params) {
  return link_.run_any(sql, params);
}

void LentSession::commit() {
  throw Error(ErrorCode::unsupported, "cannot commit an adopted transaction", "it is yours",
              "commit it through your own connection");
}

void LentSession::rollback() noexcept {}  // theirs to do

AdoptedTx adopt(MYSQL* connection) {
  if (connection == nullptr) {
    throw Error(ErrorCode::invalid_argument, "cannot adopt a MariaDB connection", "it is null");
  }
  return AdoptedTx(std::make_unique<LentSession>(connection));
}

}  // namespace postrider::mariadb
