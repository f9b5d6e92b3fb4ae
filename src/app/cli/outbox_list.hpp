// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/command.hpp"

namespace postrider::cli {

/// postrider outbox list, postrider outbox stuck
void add_outbox_list(CLI::App& outbox, Chosen& chosen);

}  // namespace postrider::cli
