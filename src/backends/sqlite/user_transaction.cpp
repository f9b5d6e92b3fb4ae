// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/user_transaction.hpp"

#include <sqlite3.h>

#include <string>

#include "backends/sqlite/session.hpp"
#include "postrider/error.hpp"

namespace postrider::sqlite {

Connection& connection_of(Tx& tx, std::string_view file, std::string_view what) {
  constexpr std::string_view same_storage = "begin it on the same storage";
  auto* session = dynamic_cast<Session*>(&tx.session());
  if (session == nullptr && tx.kind() != BackendKind::sqlite) {
    throw Error(ErrorCode::wrong_storage, what,
                "the transaction belongs to " + std::string(to_string(tx.kind())), same_storage);
  }
  if (session == nullptr || !session->active()) {
    throw Error(ErrorCode::not_in_transaction, what, "the transaction is not active",
                tx.adopted() ? "BEGIN on your connection first" : "begin a new one");
  }
  Connection& connection = session->connection();
  if (connection.file() != file) {
    throw Error(ErrorCode::wrong_storage, what,
                "the transaction belongs to the file " + std::string(connection.file()), same_storage);
  }
  return connection;
}

Savepoint::Savepoint(Connection& connection) : connection_(connection) {
  connection_.run("SAVEPOINT postrider_step");
}

Savepoint::~Savepoint() {
  // Outside a transaction SQLite has rolled everything back already.
  if (released_ || !connection_.in_transaction()) return;
  sqlite3_exec(connection_.native(), "ROLLBACK TO postrider_step; RELEASE postrider_step", nullptr, nullptr,
               nullptr);
}

void Savepoint::release() {
  connection_.run("RELEASE postrider_step");
  released_ = true;
}

}  // namespace postrider::sqlite
