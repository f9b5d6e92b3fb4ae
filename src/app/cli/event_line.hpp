// SPDX-License-Identifier: Apache-2.0
// Events as one line each: for people, and as JSON lines for programs.
#pragma once

#include <iosfwd>

#include "app/cli/output.hpp"
#include "postrider/event_log.hpp"
#include "postrider/outbox_admin.hpp"
#include "postrider/stored_event.hpp"

namespace postrider::cli {

void print_line(std::ostream& out, Format format, const StoredEvent& event);
void print_line(std::ostream& out, Format format, const LogEntry& entry);
void print_line(std::ostream& out, Format format, const OutboxRecord& record);

}  // namespace postrider::cli
