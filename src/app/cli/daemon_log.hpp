// SPDX-License-Identifier: Apache-2.0
// The log of what runs for long: standard error, each line with its time unless the journal has that.
#pragma once

#include "postrider/log.hpp"

namespace postrider::cli {

/// Whether JOURNAL_STREAM (`stream`, null when it is not set) names what is open as `descriptor`: then
/// systemd's journal notes the time of each line.
[[nodiscard]] bool is_journal(const char* stream, int descriptor);

/// As log_to_stderr, with the time in front where the reader would not know it.
[[nodiscard]] LogCallback daemon_log(LogLevel least);

}  // namespace postrider::cli
