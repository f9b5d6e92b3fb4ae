// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/session.hpp"

#include "core/failpoint.hpp"
#include "postrider/sqlite.hpp"

namespace postrider::sqlite {

OwnSession::OwnSession(Writer::Lease lease) : lease_(std::move(lease)) {
  lease_.connection().begin();
}

void OwnSession::commit() {
  if (!active()) {
    throw Error(ErrorCode::not_in_transaction, "cannot commit",
                "SQLite has rolled the transaction back after an earlier error", "begin it again");
  }
  failpoint("sqlite.commit.before");
  lease_.connection().commit();
  try {
    failpoint("sqlite.commit.after");
  } catch (const Error& error) {
    // Whatever fails here, the commit has happened: the caller must not take it for a rollback.
    throw Error(ErrorCode::unavailable, {.in_doubt = true}, "cannot commit", error.what());
  }
}

AdoptedTx adopt(sqlite3* connection) {
  if (connection == nullptr)
    throw Error(ErrorCode::invalid_argument, "sqlite::adopt was given no connection");
  return AdoptedTx(std::make_unique<AdoptedSession>(connection));
}

}  // namespace postrider::sqlite
