// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/identifier.hpp"
#include "postrider/migration.hpp"
#include "storage/embedded_migration.hpp"

namespace postrider {

/// What a backend does for the migrator. One object serves one run, on one connection.
class MigrationTarget {
 public:
  virtual ~MigrationTarget() = default;
  /// Keeps other runs out until the object dies; waits for them, bounded, then throws Error(timeout).
  virtual void lock() = 0;
  /// Versions recorded as applied, ascending; empty when the bookkeeping table does not exist. Must not
  /// create it.
  virtual std::vector<int> applied() = 0;
  /// Runs the statements of one step and records it (creating the bookkeeping table if needed): in one
  /// transaction where the database has transactional DDL; else statement by statement, each written so that
  /// it can be repeated, the record last.
  /// False when another program has done it meanwhile.
  virtual bool apply(const MigrationStep& step) = 0;
};

/// The steps from `applied` to the target. Throws Error(schema) when `applied` has versions that `known`
/// lacks, with a hint to upgrade, or a gap.
[[nodiscard]] MigrationReport plan_migrations(std::span<const EmbeddedMigration> known,
                                              std::span<const int> applied, const Identifier& schema,
                                              const MigrateOptions& options);

/// Locks, plans, applies. With `dry_run` nothing is locked or changed.
MigrationReport run_migrations(MigrationTarget& target, std::span<const EmbeddedMigration> known,
                               const Identifier& schema, const MigrateOptions& options);

/// What every error about missing or outdated tables tells, whichever backend found it out.
inline constexpr std::string_view migrate_hint =
    "call storage->migrate() first (postrider migrate), or set StorageOptions::schema (--schema) to where "
    "the "
    "tables are";

/// Whether a message or a statement names one of our own tables, in whichever schema or behind whichever
/// prefix. A guess, for a better hint: somebody's own `audit_events` looks like the event store's table
/// behind the prefix `audit`.
[[nodiscard]] bool names_our_table(std::string_view text) noexcept;

/// Throws Error(schema) unless exactly the known versions are applied; the hint says what to call.
void require_current_schema(std::span<const EmbeddedMigration> known, std::span<const int> applied,
                            std::string_view storage_name);

/// Splits a script at semicolons that end a line (of code: a line that begins with `--` never ends a
/// statement). Leaves out what is nothing but comments. Deliberately no SQL parser: the body of a trigger or
/// a procedure stands between two lines that are not indented and say nothing but `BEGIN` and `END;`.
[[nodiscard]] std::vector<std::string> split_statements(std::string_view sql);
/// Replaces `{schema}` by the identifier.
[[nodiscard]] std::string fill_schema(std::string_view sql, const Identifier& schema);

}  // namespace postrider
