// SPDX-License-Identifier: Apache-2.0
// The only place that joins the database backends: which ones are here depends on the components you link.
#pragma once

#include <array>

#include "postrider/sqlite.hpp"
#include "postrider/storage.hpp"
#if defined(POSTRIDER_WITH_POSTGRES)
#include "postrider/postgres.hpp"
#endif
#if defined(POSTRIDER_WITH_MARIADB)
#include "postrider/mariadb.hpp"
#endif

namespace postrider {

/// Opens a database by its URL: `sqlite:shop.db`, `postgresql://user@host/db`,
/// `mariadb://user:password@host/db`. PostgreSQL and MariaDB need their component linked
/// (`postrider::postgres`, `postrider::mariadb`). Does not create tables: call `migrate()`.
///
/// Static on purpose: its body depends on the components of the program that includes it.
[[nodiscard]] static inline std::unique_ptr<Storage> open(std::string_view url,
                                                          const StorageOptions& options = {}) {
  const std::array drivers {
    sqlite::driver(),
#if defined(POSTRIDER_WITH_POSTGRES)
        postgres::driver(),
#endif
#if defined(POSTRIDER_WITH_MARIADB)
        mariadb::driver(),
#endif
  };
  return open_with(drivers, url, options);
}

}  // namespace postrider
