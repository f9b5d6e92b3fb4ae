// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "postrider/detail/tx_session.hpp"

namespace postrider {

/// What a statement does to the transaction that it stands in.
enum class TransactionControl {
  none,    ///< nothing; SAVEPOINT and RELEASE are of this kind, since they undo nothing
  undoes,  ///< ROLLBACK TO: what was written before it may be gone
  hides,   ///< cannot be told from its text: CALL, EXECUTE, compound statements and rarities on MariaDB
  ends,  ///< BEGIN, COMMIT, ROLLBACK, SET autocommit, LOCK TABLES …: ends it, or puts another in its place
};

/// Judges by the first words, behind white space, comments and empty statements. One statement is looked at:
/// the drivers refuse a text of several. DDL, which commits on MariaDB, is `none`: the server's answer tells
/// of it.
[[nodiscard]] TransactionControl transaction_control(BackendKind kind, std::string_view sql);

/// In upper case, behind white space, comments and empty statements; empty when there is none.
[[nodiscard]] std::string first_word(BackendKind kind, std::string_view sql);

}  // namespace postrider
