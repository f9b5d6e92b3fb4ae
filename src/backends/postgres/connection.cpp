// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/connection.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>

#include "core/wording.hpp"

namespace postrider::postgres {

namespace {

std::string name_of(std::string_view sql) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : sql) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "postrider_%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

void log_notice(void* context, const PGresult* notice) {
  const LogCallback& log = static_cast<const ConnectionContext*>(context)->log;
  if (!log) return;
  const char* message = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
  if (message != nullptr) log(LogLevel::debug, std::string("postrider: PostgreSQL says: ") + message);
}

/// Waits for the socket until the deadline. False when it passed.
bool wait_for(int socket, int events, SteadyPoint deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd poll_for{socket, static_cast<short>(events), 0};
    const int ready = ::poll(&poll_for, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // let libpq find out what is wrong with its socket
  }
}

bool readable(int socket) {
  pollfd poll_for{socket, POLLIN, 0};
  return ::poll(&poll_for, 1, 0) > 0;
}

}  // namespace

const Statement begin_statement{"BEGIN", Statement::Use::plain};
const Statement begin_worker_statement{"BEGIN ISOLATION LEVEL READ COMMITTED", Statement::Use::plain};
const Statement commit_statement{"COMMIT", Statement::Use::plain};
const Statement rollback_statement{"ROLLBACK", Statement::Use::plain};
const Statement settings_statement{
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), "
    "set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), "
    "set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true), "
    "set_config('lock_timeout', '1s', true), clock_timestamp()"};

Statement::Statement(std::string text, Use how) : sql(std::move(text)), use(how), name(name_of(sql)) {}

void ConnectionContext::use_unnamed_statements(std::string_view reason) {
  if (unnamed_statements.exchange(true)) return;
  if (log) {
    log(LogLevel::info, "postrider: " + name + " is reached through a transaction-mode pooler (" +
                            std::string(reason) + "): going on without prepared statements");
  }
}

namespace {

/// libpq asks back where nobody answers, in a line of its own for each address; our hint says it once.
std::string without_questions(std::string why) {
  constexpr std::string_view question = "Is the server running";
  for (std::size_t at = why.find(question); at != std::string::npos; at = why.find(question)) {
    std::size_t begin = at;
    while (begin > 0 && std::isspace(static_cast<unsigned char>(why[begin - 1])) != 0) --begin;
    const std::size_t end = why.find('?', at);
    why.erase(begin, end == std::string::npos ? end : end + 1 - begin);
  }
  return why;
}

/// Waiting will not help. libpq gives no SQLSTATE for a failed connect, only the server's words.
bool is_permanent(std::string_view why) {
  constexpr std::array<std::string_view, 6> signs{"does not exist",        "authentication failed",
                                                  "no pg_hba.conf entry",  "no password supplied",
                                                  "invalid integer value", "invalid port number"};
  return std::any_of(signs.begin(), signs.end(),
                     [&](std::string_view sign) { return why.find(sign) != std::string_view::npos; });
}

}  // namespace

Connection::Connection(ConnectionContext& context) : context_(context), patience_(context.connect_timeout) {
  const std::string what = "cannot connect to " + context.name;
  // What stands before dbname can be overridden by the URL, what stands behind it cannot.
  // Keepalives find a host that is gone where nothing else does: while a migration is waited for.
  const std::array keywords{"keepalives_idle",           "keepalives_interval",
                            "keepalives_count",          "tcp_user_timeout",
                            "fallback_application_name", "dbname",
                            "client_encoding",           static_cast<const char*>(nullptr)};
  const std::array values{
      "30", "10", "3", "60000", "postrider", context.url.c_str(), "UTF8", static_cast<const char*>(nullptr)};
  const SteadyPoint deadline = std::chrono::steady_clock::now() + context.connect_timeout;
  native_.reset(PQconnectStartParams(keywords.data(), values.data(), 1));
  const auto refuse = [&](const std::string& why) {
    if (is_permanent(why)) {
      throw Error(ErrorCode::unavailable, {.connection_lost = true}, what, why,
                  "correct the URL, or create the role or database that it names");
    }
    throw Error(ErrorCode::unavailable, {.retryable = true, .connection_lost = true}, what, why,
                "check that the server runs and that its address is right");
  };
  if (native_ == nullptr) refuse("out of memory");
  PostgresPollingStatusType state = PGRES_POLLING_WRITING;
  while (PQstatus(native_.get()) != CONNECTION_BAD && state != PGRES_POLLING_OK) {
    const int events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (!wait_for(PQsocket(native_.get()), events, deadline)) refuse("no answer within the connect timeout");
    state = PQconnectPoll(native_.get());
    if (state == PGRES_POLLING_FAILED) break;
  }
  if (PQstatus(native_.get()) != CONNECTION_OK)
    refuse(without_questions(failure_of(nullptr, native_.get()).message));
  PQsetNoticeReceiver(native_.get(), &log_notice, &context_);
  // Otherwise sending would wait, for ever, for a server that takes nothing.
  if (PQsetnonblocking(native_.get(), 1) != 0) refuse(failure_of(nullptr, native_.get()).message);

  // A pooler hands out process ids of its own making. To know it now is better than to learn it from a failed
  // statement inside a user's transaction.
  Pipeline pipeline(*this, what);
  pipeline.send_text("SELECT pg_backend_pid()", {});
  const std::vector<Result> results = pipeline.finish();
  if (results.at(0).text(0, 0) != std::to_string(PQbackendPID(native_.get()))) {
    context_.use_unnamed_statements("the server process is not the one that was connected to");
  }
  patience_ = context.io_timeout;
}

Connection::~Connection() = default;

bool Connection::usable() const noexcept {
  return !broken_ && PQstatus(native_.get()) == CONNECTION_OK && transaction_status() == PQTRANS_IDLE;
}

bool Connection::await_result() noexcept {
  PGconn* const native = native_.get();
  while (PQisBusy(native) != 0) {
    const int unsent = PQflush(native);
    if (unsent < 0) return true;
    const SteadyPoint deadline =
        patience_ == Duration::zero() ? SteadyPoint::max() : std::chrono::steady_clock::now() + patience_;
    if (!wait_for(PQsocket(native), unsent > 0 ? POLLIN | POLLOUT : POLLIN, deadline)) return false;
    if (PQconsumeInput(native) == 0) return true;
  }
  return true;
}

bool Connection::ping() noexcept {
  // Whoever asks is ready to connect anew: what is longer than that is too long.
  const Patience patience(*this, context_.connect_timeout);
  try {
    Pipeline pipeline(*this, "ping");
    pipeline.send_text("SELECT 1", {});
    (void)pipeline.finish();
    return true;
  } catch (const std::exception&) {
    broken_ = true;
    return false;
  }
}

bool Connection::alive() noexcept {
  // Between statements the server says nothing, except why it closes the connection, and rarely a notice.
  for (int i = 0; i < 8 && PQstatus(native_.get()) == CONNECTION_OK; ++i) {
    if (!readable(PQsocket(native_.get()))) return true;
    if (PQconsumeInput(native_.get()) == 0) break;
    (void)PQisBusy(native_.get());  // takes the messages in; they reach the notice receiver
  }
  if (PQstatus(native_.get()) == CONNECTION_OK) return true;
  broken_ = true;
  return false;
}

void Connection::rollback() noexcept {
  if (broken_ || PQstatus(native_.get()) != CONNECTION_OK) return;
  if (transaction_status() == PQTRANS_IDLE) return;
  try {
    Pipeline pipeline(*this, "cannot roll back");
    pipeline.send(rollback_statement);
    (void)pipeline.finish();
  } catch (const std::exception& error) {
    // Closing the connection rolls back as well.
    broken_ = true;
    if (context_.log) context_.log(LogLevel::debug, error.what());
  }
}

Pipeline::Pipeline(Connection& connection, std::string_view what) : connection_(connection), what_(what) {
  if (PQstatus(connection_.native()) != CONNECTION_OK || connection_.broken_) fail(nullptr, true);
  if (PQenterPipelineMode(connection_.native()) == 0) fail(nullptr, true);
}

Pipeline::~Pipeline() {
  if (!finished_) connection_.mark_broken();
}

void Pipeline::check_sent(int sent) {
  if (sent == 0) fail(nullptr, !doubtful_commit_);
}

void Pipeline::send_native(const Statement& statement, const Native& p) {
  PGconn* native = connection_.native();
  if (statement.use == Statement::Use::plain ||
      connection_.context_.unnamed_statements.load(std::memory_order_relaxed)) {
    check_sent(PQsendQueryParams(native, statement.sql.c_str(), p.count, p.types, p.values, p.lengths,
                                 p.formats, p.result_format));
  } else {
    const bool on_its_way = std::any_of(expected_.begin(), expected_.end(), [&](const Expected& one) {
      return one.prepares != nullptr && one.prepares->name == statement.name;
    });
    if (!on_its_way && !connection_.prepared_.contains(statement.name)) {
      check_sent(PQsendPrepare(native, statement.name.c_str(), statement.sql.c_str(),
                               p.types == nullptr ? 0 : p.count, p.types));
      expected_.push_back({&statement});
    }
    check_sent(PQsendQueryPrepared(native, statement.name.c_str(), p.count, p.values, p.lengths, p.formats,
                                   p.result_format));
  }
  expected_.push_back({nullptr});
}

void Pipeline::send(const Statement& statement, const Params& params) {
  const Params::Native p = params.native();
  send_native(statement, {params.count(), nullptr, p.values, p.lengths, p.formats, 1});
}

void Pipeline::send_text(const Statement& statement, std::span<const Value> params) {
  const TextParams p(params);
  send_native(statement, {p.count(), p.types(), p.values(), p.lengths(), p.formats(), 0});
}

void Pipeline::send_text(const std::string& sql, std::span<const Value> params) {
  if (sql.find('\0') != std::string::npos) {
    throw Error(ErrorCode::invalid_argument, what_, "the statement contains a NUL character");
  }
  const TextParams p(params);
  check_sent(PQsendQueryParams(connection_.native(), sql.c_str(), p.count(), p.types(), p.values(),
                               p.lengths(), p.formats(), 0));
  expected_.push_back({nullptr});
}

void Pipeline::send_commit(bool harmless) {
  doubtful_commit_ = !harmless;
  send(commit_statement);
  expected_.back().commits = true;
}

std::vector<Result> Pipeline::finish() {
  PGconn* native = connection_.native();
  check_sent(PQpipelineSync(native));
  std::vector<Result> results;
  results.reserve(expected_.size());
  Result failed;
  bool lost = false;
  bool silent = false;
  std::size_t at = 0;  // in expected_
  int silences = 0;
  for (bool synced = false; !synced;) {
    if (!connection_.await_result()) {
      lost = silent = true;
      break;
    }
    Result result(PQgetResult(native));
    if (result.get() == nullptr) {
      // One null ends each statement; two of them mean that nothing more will come.
      lost = PQstatus(native) != CONNECTION_OK;
      if (lost || ++silences > 1) break;
      continue;
    }
    silences = 0;
    switch (result.status()) {
      case PGRES_PIPELINE_SYNC:
        synced = true;
        break;
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK:
      case PGRES_EMPTY_QUERY:
        if (at < expected_.size()) {
          if (expected_[at].prepares != nullptr) {
            connection_.prepared_.insert(expected_[at].prepares->name);
          } else {
            results.push_back(std::move(result));
          }
          ++at;
        }
        break;
      case PGRES_COPY_IN:
      case PGRES_COPY_OUT:
      case PGRES_COPY_BOTH:
        // Cannot be left in an orderly way inside a pipeline.
        connection_.mark_broken();
        throw Error(ErrorCode::unsupported, what_, "COPY cannot run here",
                    "use your own connection and adopt its transaction");
      default:
        if (failed.get() == nullptr && result.status() != PGRES_PIPELINE_ABORTED) failed = std::move(result);
        ++at;
        break;
    }
    if (PQstatus(native) == CONNECTION_BAD) {
      lost = true;
      break;
    }
  }
  const bool answered = at == expected_.size() && failed.get() == nullptr;
  if (lost && answered) connection_.mark_broken();  // too late to matter
  if (silent && !answered) fail_silent(failed.get() != nullptr);
  if ((lost && !answered) || failed.get() != nullptr) {
    // A COMMIT is in doubt when the connection broke and neither an answer to it nor an earlier failure came.
    const bool server_refused = failed.get() != nullptr && !lost;
    if (!lost) finished_ = PQexitPipelineMode(native) != 0;
    fail(failed.get(), server_refused);
  }
  if (!answered || (!lost && PQexitPipelineMode(native) == 0)) {
    connection_.mark_broken();
    throw Error(ErrorCode::database, what_, "the server's answers do not match the statements sent");
  }
  finished_ = true;
  for (std::size_t i = 0, execution = 0; i < expected_.size(); ++i) {
    if (expected_[i].prepares != nullptr) continue;
    if (expected_[i].commits && std::string_view(PQcmdStatus(results[execution].get())) == "ROLLBACK") {
      throw Error(ErrorCode::database, {.sqlstate = "25P02"}, what_,
                  "the transaction was rolled back, because an earlier statement of it had failed");
    }
    ++execution;
  }
  return results;
}

void Pipeline::fail(const PGresult* result, bool certain) {
  Failure failure = failure_of(result, connection_.native());
  failure.in_doubt = doubtful_commit_ && !certain;
  if (failure.connection_lost) connection_.mark_broken();
  if (failure.sqlstate == "26000" || failure.sqlstate == "42P05") {
    connection_.context_.use_unnamed_statements(failure.message);
  }
  throw make_error(what_, failure);
}

void Pipeline::fail_silent(bool certain) {
  connection_.mark_broken();
  throw make_error(what_, {.message = "the server has been silent for " + text_of(connection_.patience_),
                           .connection_lost = true,
                           .in_doubt = doubtful_commit_ && !certain});
}

TextParams::TextParams(std::span<const Value> values) {
  owned_.reserve(values.size());  // addresses of its elements are kept
  for (const Value& value : values) {
    struct Visitor {
      TextParams& to;
      void put(Oid type, const char* text, std::size_t length, int format) const {
        to.types_.push_back(type);
        to.values_.push_back(text);
        to.lengths_.push_back(static_cast<int>(length));
        to.formats_.push_back(format);
      }
      void put_owned(std::string text) const {
        to.owned_.push_back(std::move(text));
        put(0, to.owned_.back().c_str(), to.owned_.back().size(), 0);
      }
      void operator()(std::monostate) const { put(0, nullptr, 0, 0); }
      void operator()(std::int64_t number) const { put_owned(std::to_string(number)); }
      void operator()(double number) const {
        std::array<char, 40> text{};
        std::snprintf(text.data(), text.size(), "%.17g", number);
        put_owned(text.data());
      }
      void operator()(std::string_view text) const {
        if (text.find('\0') != std::string_view::npos) {
          throw Error(ErrorCode::invalid_argument, "cannot bind a parameter",
                      "text must not contain a NUL character", "pass bytes as Blob");
        }
        put_owned(std::string(text));
      }
      void operator()(Blob blob) const {
        put(oid::bytea, blob.bytes.empty() ? "" : blob.bytes.data(), blob.bytes.size(), 1);
      }
    };
    std::visit(Visitor{*this}, value.get());
  }
}

Rows to_rows(const Result& result) {
  Rows rows;
  rows.affected = result.affected();
  const int columns = PQnfields(result.get());
  rows.rows.reserve(static_cast<std::size_t>(result.rows()));
  for (int row = 0; row < result.rows(); ++row) {
    std::vector<Rows::Cell>& cells = rows.rows.emplace_back();
    cells.reserve(static_cast<std::size_t>(columns));
    for (int column = 0; column < columns; ++column) {
      if (result.is_null(row, column)) {
        cells.emplace_back();
      } else {
        cells.emplace_back(std::string(result.text(row, column)));
      }
    }
  }
  return rows;
}

}  // namespace postrider::postgres
