// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/storage.hpp"

struct sqlite3;

namespace postrider::sqlite {

/// `sqlite:path` or `sqlite:///absolute/path`. One file in WAL mode, no server.
[[nodiscard]] StorageDriver driver() noexcept;

/// Publishes inside a transaction that you began on your own connection to the same file. The connection
/// stays yours; neither may be used by another thread meanwhile.
[[nodiscard]] AdoptedTx adopt(sqlite3* connection);

}  // namespace postrider::sqlite
