// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/session.hpp"

#include "core/failpoint.hpp"
#include "core/wording.hpp"
#include "postrider/postgres.hpp"
#include "storage/placeholders.hpp"

namespace postrider::postgres {

PooledSession::PooledSession(ConnectionPool::Lease lease) noexcept
    : lease_(std::move(lease)), connection_(static_cast<Connection*>(lease_.get())) {}

bool PooledSession::active() const noexcept {
  if (state_ == State::fresh) return true;
  if (state_ == State::ended) return false;
  // A failed transaction counts: it still waits for its end, and the server's own words tell why a statement
  // is refused.
  const PGTransactionStatusType status = connection_->transaction_status();
  return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

template <class Send>
Result PooledSession::run_one(std::string_view what, const Send& send) {
  if (!active()) {
    throw Error(ErrorCode::not_in_transaction, what, "the transaction has ended", "begin a new one");
  }
  const bool first = state_ == State::fresh;
  for (bool again = false;; again = true) {
    try {
      Pipeline pipeline(*connection_, what);
      if (first) {
        state_ = State::begun;
        pipeline.send(begin_statement);
      }
      send(pipeline);
      std::vector<Result> results = pipeline.finish();
      return std::move(results.back());
    } catch (const Error& error) {
      // A pooler mislaid our prepared statement. As long as the transaction has nothing else in it, begin it
      // anew.
      if (!first || again || (error.sqlstate() != "26000" && error.sqlstate() != "42P05")) throw;
      connection_->rollback();
    }
  }
}

Rows PooledSession::execute(std::string_view sql, std::span<const Value> params) {
  const NumberedStatement numbered = numbered_placeholders(sql);
  numbered.check(sql, params.size());
  return to_rows(
      run_one(cannot_run(sql), [&](Pipeline& pipeline) { pipeline.send_text(numbered.sql, params); }));
}

Result PooledSession::run(const Statement& statement, const Params& params, std::string_view what) {
  return run_one(what, [&](Pipeline& pipeline) { pipeline.send(statement, params); });
}

void PooledSession::commit() {
  if (state_ == State::begun) {
    failpoint("postgres.commit.before");
    // A server that has gone away meanwhile cannot have seen our COMMIT: then nothing is in doubt.
    if (!connection_->alive()) {
      throw make_error("cannot commit",
                       {.message = "the server closed the connection", .connection_lost = true});
    }
    // COMMIT outside a transaction succeeds, with a warning.
    if (!active()) {
      throw Error(ErrorCode::not_in_transaction, "cannot commit",
                  "one of its statements ended the transaction",
                  "look at what is there before you repeat it");
    }
    Pipeline pipeline(*connection_, "cannot commit");
    pipeline.send_commit(false);
    (void)pipeline.finish();
    failpoint("postgres.commit.after");
  }
  state_ = State::ended;
  lease_ = {};
}

void PooledSession::rollback() noexcept {
  if (state_ == State::begun) connection_->rollback();
  state_ = State::ended;
  lease_ = {};
}

AdoptedSession::AdoptedSession(PGconn* connection) : connection_(connection) {
  if (connection == nullptr) {
    throw Error(ErrorCode::invalid_argument, "cannot adopt a PostgreSQL connection", "the pointer is null");
  }
  require_plain_mode("cannot adopt a PostgreSQL connection");
}

bool AdoptedSession::active() const noexcept {
  return PQtransactionStatus(connection_) == PQTRANS_INTRANS;
}

void AdoptedSession::require_plain_mode(std::string_view what) const {
  if (PQpipelineStatus(connection_) == PQ_PIPELINE_OFF) return;
  throw Error(ErrorCode::invalid_argument, what, "it is in pipeline mode",
              "read all pending results and call PQexitPipelineMode first");
}

void AdoptedSession::require_utf8(std::string_view what) const {
  // In any other the server would make other text of ours, and what is looked for by a hash of it would not
  // be found. SQL_ASCII means as it is.
  const char* const encoding = PQparameterStatus(connection_, "client_encoding");
  const std::string_view name = encoding == nullptr ? std::string_view() : encoding;
  if (name == "UTF8" || name == "SQL_ASCII") return;
  throw Error(ErrorCode::invalid_argument, what,
              "the client_encoding of the connection is " + std::string(name) + ", not UTF8",
              "call PQsetClientEncoding(connection, \"UTF8\") before");
}

Result AdoptedSession::checked(PGresult* native, std::string_view what) const {
  Result result(native);
  switch (result.status()) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_EMPTY_QUERY:
      return result;
    default:
      throw make_error(what, failure_of(native, connection_));
  }
}

Rows AdoptedSession::execute(std::string_view sql, std::span<const Value> params) {
  const std::string what = cannot_run(sql);
  require_plain_mode(what);
  const NumberedStatement numbered = numbered_placeholders(sql);
  numbered.check(sql, params.size());
  if (numbered.sql.find('\0') != std::string::npos) {
    throw Error(ErrorCode::invalid_argument, what, "the statement contains a NUL character");
  }
  const TextParams p(params);
  return to_rows(checked(PQexecParams(connection_, numbered.sql.c_str(), p.count(), p.types(), p.values(),
                                      p.lengths(), p.formats(), 0),
                         what));
}

Result AdoptedSession::run(const Statement& statement, const Params& params, std::string_view what) {
  require_plain_mode(what);
  require_utf8(what);
  const Params::Native p = params.native();
  return checked(PQexecParams(connection_, statement.sql.c_str(), params.count(), nullptr, p.values,
                              p.lengths, p.formats, 1),
                 what);
}

void AdoptedSession::commit() {
  throw Error(ErrorCode::unsupported, "cannot commit", "the transaction belongs to somebody else",
              "commit on your own connection");
}

AdoptedTx adopt(pg_conn* connection) {
  return AdoptedTx(std::make_unique<AdoptedSession>(connection));
}

}  // namespace postrider::postgres
