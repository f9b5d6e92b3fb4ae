// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/storage.hpp"

struct pg_conn;

namespace postrider::postgres {

/// `postgresql://…` or `postgres://…`, any URI that libpq takes.
[[nodiscard]] StorageDriver driver() noexcept;

/// Publishes inside a transaction that you began on your own connection (a `PGconn*`). It must not be in
/// pipeline mode. The connection stays yours; neither may be used by another thread meanwhile.
[[nodiscard]] AdoptedTx adopt(pg_conn* connection);

}  // namespace postrider::postgres
