// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/event_manager.hpp"
#include "postrider/event_queue.hpp"
#include "postrider/storage.hpp"

namespace postrider::demo {

inline constexpr int crashing_order = 250;   ///< takes its worker down, once
inline constexpr int poisonous_order = 400;  ///< takes every worker down
inline constexpr int hopeless_order = 13;    ///< nobody lives there

/// A dead worker's orders are free after a second: who watches does not want to wait for a minute.
[[nodiscard]] QueueOptions queue_options();

/// Whether "stock" has the bug that aborts the process.
enum class Stock { buggy, mended };

/// The three handlers of a paid order: "invoice", "mail", "stock".
void register_handlers(EventManager& manager, Storage& storage, Stock stock);

}  // namespace postrider::demo
