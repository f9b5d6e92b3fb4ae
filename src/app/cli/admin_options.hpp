// SPDX-License-Identifier: Apache-2.0
// What every command that looks into a database takes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "postrider/storage.hpp"

namespace postrider::cli {

/// Which database, and how to answer. Either --storage (and --schema), or -c with a configuration that has
/// them.
struct AdminOptions {
  std::string storage{};
  std::string schema = "postrider";
  std::string config{};
  Format format = Format::table;
};

void add_admin_options(CLI::App& command, AdminOptions& options);
/// -o alone, of those who need no database.
CLI::Option& add_output_option(CLI::App& command, Format& format);

/// A database that was opened, and what it takes to put a question of one's own to it.
struct Database {
  std::string url{};
  StorageOptions options{};
  std::unique_ptr<Storage> storage{};
  std::string named{};  ///< how this command was told: "--storage sqlite:shop.db", "-c postrider.toml"
  bool from_config = false;

  /// A hint for who finds no file where it should be.
  [[nodiscard]] std::string how_to_make() const;
  /// For SQL: `postrider.outbox_event`, `postrider_outbox_event`.
  [[nodiscard]] std::string table(std::string_view name) const;
};

/// Which database is meant; it is not opened yet. Throws like `open_for`.
[[nodiscard]] Database resolve(const AdminOptions& options);
/// The file of a URL for SQLite; nothing for others. Throws Error for one that SQLite's driver refuses.
[[nodiscard]] std::optional<std::string> sqlite_file(std::string_view url);

/// Whether it is a file of SQLite that is not there. Of others nobody knows without connecting.
[[nodiscard]] bool is_absent(const Database& database);
/// Throws Error(unavailable) for a URL of SQLite whose file is not there.
void require_database(const Database& database);

/// Opens it as told. Throws Error(invalid_argument) when neither --storage nor -c was given, and
/// Error(unavailable) for a SQLite file that is not there: opening would make it, and a typing error look
/// like an empty database.
[[nodiscard]] std::unique_ptr<Storage> open_for(const AdminOptions& options, bool may_create = false);
[[nodiscard]] Database open_database(const AdminOptions& options, bool may_create = false);

/// Runs `verb(storage, options)` on the opened database, when the command was given.
template <class Options, class Verb>
void when_chosen_on_storage(CLI::App& command, Chosen& chosen, std::shared_ptr<Options> options, Verb verb) {
  add_admin_options(command, *options);
  when_chosen(command, chosen, std::move(options), [verb](const Options& given) {
    const std::unique_ptr<Storage> storage = open_for(given);
    return verb(*storage, given);
  });
}

/// Says that the command changes something, in a database that the common options name.
template <class Options>
void say_it_changes(const CLI::App& command, Chosen& chosen, const std::shared_ptr<Options>& options) {
  chosen.changes[&command] = {.open = [options] { return open_for(*options); }};
}

/// As `when_chosen_on_storage`, for a verb that changes something. One that takes a Change as well tells it
/// when it begins, and how many events it has changed.
template <class Options, class Verb>
void when_chosen_to_change(CLI::App& command, Chosen& chosen, std::shared_ptr<Options> options, Verb verb) {
  say_it_changes(command, chosen, options);
  when_chosen_on_storage(command, chosen, std::move(options),
                         [verb, &change = chosen.change](Storage& storage, const Options& given) {
                           if constexpr (std::is_invocable_v<Verb, Storage&, const Options&, Change&>) {
                             return verb(storage, given, change);
                           } else {
                             change.begin();
                             return verb(storage, given);
                           }
                         });
}

/// As `when_chosen_on_storage`, for verbs with SQL of their own: `verb(database, options)`.
template <class Options, class Verb>
void when_chosen_on_database(CLI::App& command, Chosen& chosen, std::shared_ptr<Options> options, Verb verb) {
  add_admin_options(command, *options);
  when_chosen(command, chosen, std::move(options), [verb](const Options& given) {
    const Database database = open_database(given);
    return verb(database, given);
  });
}

}  // namespace postrider::cli
