// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace postrider {

/// One numbered step of the schema, compiled into the library from migrations/NNN_name.{up,down}.sql.
struct EmbeddedMigration {
  int version;
  std::string_view name;
  std::string_view up;
  std::string_view down;
};

}  // namespace postrider
