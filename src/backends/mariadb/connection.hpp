// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mysql.h>

#include <memory>

#include "backends/mariadb/link.hpp"
#include "backends/mariadb/url.hpp"
#include "storage/pool.hpp"

namespace postrider::mariadb {

/// A connection of our own: READ COMMITTED, UTC, utf8mb4, strict, autocommit; affected rows are those that
/// matched, as in the other databases. Used by one thread at a time.
class Connection final : public PooledConnection {
 public:
  /// Throws Error(unavailable), or Error(unsupported) for a server that is too old.
  [[nodiscard]] static std::unique_ptr<Connection> open(const ConnectSettings& settings);

  [[nodiscard]] bool usable() const noexcept override { return link_.alive(); }
  [[nodiscard]] bool ping() noexcept override;
  [[nodiscard]] Link& link() noexcept { return link_; }

 private:
  struct CloseMysql {
    void operator()(MYSQL* mysql) const noexcept { mysql_close(mysql); }
  };
  using Handle = std::unique_ptr<MYSQL, CloseMysql>;
  Connection(Handle mysql, std::string name);

  Handle mysql_;
  Link link_;  // after what it borrows
};

}  // namespace postrider::mariadb
