// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/tx_work.hpp"

#include <string>

#include "backends/mariadb/session.hpp"
#include "postrider/error.hpp"

namespace postrider::mariadb {

Link& link_of(Tx& tx) {
  if (tx.kind() != BackendKind::mariadb) {
    throw Error(ErrorCode::wrong_storage, "cannot write events to MariaDB",
                "the transaction belongs to " + std::string(to_string(tx.kind())),
                "use a transaction of the storage that the events are in");
  }
  if (!tx.active()) {
    throw Error(ErrorCode::not_in_transaction, "cannot write events", "the transaction is not active",
                "publish between begin and commit; autocommit is no transaction");
  }
  return static_cast<Session&>(tx.session()).link();
}

void whole_or_not(Link& link, bool several, const std::function<void()>& body) {
  if (!several) {
    body();
    return;
  }
  link.command("SAVEPOINT postrider_insert");
  try {
    body();
  } catch (const Error&) {
    if (link.in_transaction()) link.command("ROLLBACK TO SAVEPOINT postrider_insert");
    throw;
  }
  link.command("RELEASE SAVEPOINT postrider_insert");
}

Value bytes_or_null(std::string_view text) {
  return text.empty() ? Value(nullptr) : Value(Blob{text});
}

std::size_t bytes_of(const Event& event) {
  return event.payload().size() + event.headers_json().size() + 1024;
}

}  // namespace postrider::mariadb
