// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "postrider/event.hpp"
#include "postrider/listener.hpp"
#include "storage/outbox_store.hpp"

namespace postrider {

/// An event on its way to the listeners. The payload is shared with whoever published it.
struct OutboxItem {
  std::optional<Event> event{};  ///< empty only in a slot that nobody uses
  Token token{};
  Attempt failed{};
  Source source = Source::hot;
  std::string ordering_key{};  ///< empty: none
  /// Until when the row is surely leased to this node, by the steady clock.
  SteadyPoint lease_end{};
  SteadyPoint enqueued{};
  std::size_t bytes = 0;  ///< `size_of` the event

  [[nodiscard]] const EventId& id() const { return event->id(); }
  [[nodiscard]] bool ordered() const noexcept { return !ordering_key.empty(); }
};

}  // namespace postrider
