// SPDX-License-Identifier: Apache-2.0
#include "app/cli/audit.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <string_view>

#include "app/api/audit_api.hpp"
#include "app/cli/exit_codes.hpp"
#include "core/utf8.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "storage/audit_store.hpp"

namespace postrider::cli {
namespace {

/// Say where and how, not what; or nothing that anybody would ask for later.
constexpr std::array<std::string_view, 6> left_out{"storage", "schema", "config", "output", "yes", "help"};
/// What they carry belongs to the event, and may be as large as that.
constexpr std::array<std::string_view, 2> payloads{"data", "header"};

bool among(std::span<const std::string_view> names, const CLI::Option& option) {
  const std::vector<std::string>& own = option.get_lnames();
  return std::any_of(own.begin(), own.end(), [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

/// As one would type it.
std::string shell_word(const std::string& value) {
  const bool plain = !value.empty() && value.find_first_of(" \t\n'\"\\$*?;&|<>()") == std::string::npos;
  if (plain) return value;
  std::string text = "'";
  for (const char c : value) c == '\'' ? text += "'\\''" : text += c;
  return text + "'";
}

const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

bool is_dry_run(const CLI::App& command) {
  const CLI::Option* const option = command.get_option_no_throw("--dry-run");
  return option != nullptr && option->count() > 0;
}

/// What was refused, or never reached the tables, has changed nothing. The rest may have: by one of several
/// steps, or unknown to us.
bool may_have_changed(const Error& error) {
  if (error.in_doubt() || error.connection_lost()) return true;
  return api::problem_of(error).status >= 500 && error.code() != ErrorCode::unavailable &&
         error.code() != ErrorCode::schema;
}

/// " (3 events)"; nothing for what is not counted.
std::string how_far(const Change::Reached& reached, const std::string& perhaps = {}) {
  if (!reached.events) return perhaps.empty() ? "" : " (nobody knows how far)";
  return " (" + counted(static_cast<std::size_t>(*reached.events), "event") + perhaps + ")";
}

void say_nobody_has(const std::string& what, std::string_view why) {
  std::cerr << "postrider: no audit has this line, as " << why << ": " << command_line_user() << ": " << what
            << '\n';
}

/// Before `migrate`, and after `migrate --to 0`.
bool has_no_tables(Storage* storage) {
  try {
    return storage != nullptr && storage->migrate({.dry_run = true}).from == 0;
  } catch (const Error&) {
    return false;  // then something is wrong, and the log says what
  }
}

/// Into the audit; where there cannot be one yet, that is no error.
void write_down(const AuditedIn& target, const std::string& what) {
  if (target.named && !target.named()) return say_nobody_has(what, "no database was named (--storage or -c)");
  if (target.absent && target.absent()) return say_nobody_has(what, "its database is not there yet");
  std::unique_ptr<Storage> storage;
  const auto open = [&] {
    storage = target.open();
    return storage.get();
  };
  const auto log = [&](LogLevel level, std::string_view text) {
    if (level == LogLevel::error && has_no_tables(storage.get()))
      return say_nobody_has(what, "there are no tables");
    log_to_stderr(LogLevel::warning)(level, text);
  };
  api::audit_writer(open, log)({.at = Clock::system().now(), .who = command_line_user(), .what = what});
}

}  // namespace

std::string command_line_user() {
  constexpr std::string_view way = " via cli";
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"host"};
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  const bool known = ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0;
  const std::string user =
      known && found != nullptr ? std::string(found->pw_name) : "uid " + std::to_string(::geteuid());
  const std::string name = utf8_repaired(user + "@" + host.data());
  return std::string(utf8_prefix(name, AuditEntry::who_chars - way.size())) + std::string(way);
}

std::string given_text(const CLI::App& command) {
  std::string text;
  for (const CLI::App* at = &command; at->get_parent() != nullptr; at = at->get_parent()) {
    if (!text.empty()) text.insert(0, 1, ' ');
    text.insert(0, at->get_name());
  }
  for (const CLI::Option* const option : command.get_options([](const CLI::Option*) { return true; })) {
    if (option->count() == 0 || among(left_out, *option)) continue;
    const std::string name = option->get_positional() ? "" : option->get_name();
    if (option->get_expected_min() == 0 || option->get_type_size_max() == 0) {  // a flag
      text += " " + name;
      continue;
    }
    for (const std::string& value : option->results()) {
      text += (name.empty() ? "" : " " + name) + " " + (among(payloads, *option) ? "…" : shell_word(value));
    }
  }
  return text;
}

int run_chosen(const CLI::App& app, Chosen& chosen) {
  const CLI::App& command = innermost(app);
  const auto audited = chosen.changes.find(&command);
  if (audited == chosen.changes.end() || is_dry_run(command)) return chosen.run();
  const auto note = [&target = audited->second](const std::string& what) { write_down(target, what); };
  Change& change = chosen.change;
  InterruptWatch watch(
      change, [&] { note("interrupted: " + given_text(command) + how_far(change.reached(), " or more")); });
  try {
    const int code = chosen.run();
    watch.finish();
    std::cout << std::flush;  // what was done is not held back by how long it takes to note it
    const Change::Reached reached = change.reached();
    const bool nothing = reached.events == 0;
    if (reached.ended_early) {
      if (!nothing) note("interrupted: " + given_text(command) + how_far(reached));
      watch.die();
    }
    // Of several ids some may have been there.
    const bool changed = code == exit_ok || reached.events.value_or(0) > 0;
    if (changed && !nothing) note(given_text(command) + how_far(reached));
    return code;
  } catch (const Error& error) {
    watch.finish();
    const Change::Reached reached = change.reached();
    if (reached.events.value_or(0) > 0 || may_have_changed(error)) {
      note("tried, and failed: " + given_text(command) + how_far(reached));
    }
    throw;
  }
}

}  // namespace postrider::cli
