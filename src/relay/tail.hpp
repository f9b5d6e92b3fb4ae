// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "postrider/stored_event.hpp"
#include "postrider/topic.hpp"

namespace postrider {

/// What an event takes in memory, about.
[[nodiscard]] std::size_t bytes_of(const StoredEvent& event);

/// A batch for one pair, and how far was looked for it.
struct Batch {
  std::vector<StoredEvent> events{};
  Position seen{};
  bool more = false;  ///< there may be more behind `seen`
};

/// Where the store ended when somebody looked: its head, and which event stands there (of an empty one:
/// none).
struct StreamEnd {
  Position head{};
  std::optional<EventId> last{};
};

/// The store's newest events, without a gap: everything behind `from` up to `head`. Read once, shared by all
/// pairs that are in there. Not synchronised.
class Tail {
 public:
  explicit Tail(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Begins again, empty, behind this end.
  void restart(const StreamEnd& end);
  /// What stands behind `head`, in order, and how far was looked. Drops the oldest until the rest fits.
  void append(std::vector<StoredEvent> events, Position seen);

  [[nodiscard]] Position from() const noexcept { return from_; }
  [[nodiscard]] Position head() const noexcept { return end_.head; }
  [[nodiscard]] const StreamEnd& end() const noexcept { return end_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool has(Position after) const noexcept { return after >= from_; }
  /// The topic's events behind `after`, for which `has` holds.
  [[nodiscard]] Batch collect(const Topic& topic, Position after, std::size_t limit,
                              std::size_t max_bytes) const;

 private:
  std::size_t max_bytes_;
  std::deque<StoredEvent> events_;
  Position from_{};
  StreamEnd end_;
  std::size_t bytes_ = 0;
};

}  // namespace postrider
