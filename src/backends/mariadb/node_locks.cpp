// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/node_locks.hpp"

#include <utility>

#include "backends/mariadb/connection.hpp"
#include "storage/held_connection.hpp"
#include "storage/lock_number.hpp"

namespace postrider::mariadb {

MariadbNodeLocks::MariadbNodeLocks(const ConnectSettings& settings, const Identifier& schema,
                                   const Work& work)
    : settings_(settings), schema_(schema.str()), work_(work) {}

std::string MariadbNodeLocks::lock_name(std::string_view node) const {
  // Names of locks are of the whole server, and have 64 characters at most.
  return "postrider/" + std::to_string(lock_number(settings_.database + "." + schema_, node));
}

std::unique_ptr<NodeLocks::Held> MariadbNodeLocks::hold(std::string_view node) {
  std::unique_ptr<Connection> connection = Connection::open(settings_);
  const std::string name = lock_name(node);
  const Value param(name);
  bool taken = false;
  connection->link().run("SELECT GET_LOCK(?, 0)", {&param, 1},
                         [&](const RowView& row) { taken = !row.is_null(0) && row.integer(0) == 1; });
  if (!taken) return nullptr;
  return std::make_unique<HeldConnection>(std::move(connection));
}

std::vector<std::string> MariadbNodeLocks::free(std::span<const std::string> nodes) {
  std::vector<std::string> free;
  work_.run([&](Link& link) {
    free.clear();
    for (const std::string& node : nodes) {
      const std::string name = lock_name(node);
      const Value param(name);
      link.run("SELECT IS_USED_LOCK(?)", {&param, 1}, [&](const RowView& row) {
        if (row.is_null(0)) free.push_back(node);
      });
    }
  });
  return free;
}

}  // namespace postrider::mariadb
