// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/command.hpp"

namespace postrider::cli {

/// postrider outbox requeue, postrider outbox cancel
void add_outbox_changes(CLI::App& outbox, Chosen& chosen);

}  // namespace postrider::cli
