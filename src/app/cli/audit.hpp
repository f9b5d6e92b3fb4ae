// SPDX-License-Identifier: Apache-2.0
// Whoever changes something from the command line stands in the audit, as whoever does it by the API.
#pragma once

#include <string>

#include "app/cli/command.hpp"

namespace postrider::cli {

/// "anna@host7 via cli": the user of this process, as the system knows him.
[[nodiscard]] std::string command_line_user();

/// The command as it was given: "dead replay --type A". Without what says which database is meant (it may
/// have a password) and how to answer; of payloads only that there was one.
[[nodiscard]] std::string given_text(const CLI::App& command);

/// Runs what was chosen. Where that is one of `chosen.changes`, and not a dry run, the audit says who did it,
/// and with how many events where they are counted (with none: nothing was done, and nothing is said); also
/// when it failed, unless that left everything as it was, and when a signal ended it in the middle. A change
/// that cannot be written down is done all the same, and standard error says so; one without a database
/// leaves its line there alone. Returns the exit code; throws what the command throws.
int run_chosen(const CLI::App& app, Chosen& chosen);

}  // namespace postrider::cli
