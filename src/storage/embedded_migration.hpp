// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace postrider {

/// One numbered migration, embedded into the library at build time from
/// src/backends/<backend>/migrations/NNN_name.up.sql and NNN_name.down.sql. The views live as long as the program.
///
/// The build defines, in ascending order of version, for each backend:
///   namespace postrider::<backend> { std::span<const EmbeddedMigration> embedded_migrations(); }
struct EmbeddedMigration {
  int version;
  std::string_view name;
  std::string_view up;
  std::string_view down;
};

}  // namespace postrider
