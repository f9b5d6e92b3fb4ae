// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/storage.hpp"

struct st_mysql;

namespace postrider::mariadb {

/// `mariadb://user:password@host:port/database`, also `mysql://`.
[[nodiscard]] StorageDriver driver() noexcept;

/// Publishes inside a transaction that you began on your own connection (a `MYSQL*`). The connection stays
/// yours; neither may be used by another thread meanwhile.
[[nodiscard]] AdoptedTx adopt(st_mysql* connection);

}  // namespace postrider::mariadb
