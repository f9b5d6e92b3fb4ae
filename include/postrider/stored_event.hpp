// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "postrider/event.hpp"
#include "postrider/tag.hpp"

namespace postrider {

/// A place in the event store. The first event stands at 1 or later; 0 is before all. Positions are given in
/// commit order: whoever has read up to N has not missed any below. They have no gaps as long as no rows are
/// deleted by hand, but do not count on it: only their order is promised.
enum class Position : std::int64_t {};

/// An event of the store. Immutable; copying shares it.
class StoredEvent {
 public:
  struct Fields {
    Position position{};
    Event event;
    Tags tags{};  ///< sorted, each once
    std::string correlation_id{};
    std::string causation_id{};
    TimePoint stored_at{};
  };
  explicit StoredEvent(Fields fields) : fields_(std::make_shared<const Fields>(std::move(fields))) {}

  [[nodiscard]] Position position() const noexcept { return fields_->position; }
  [[nodiscard]] const Event& event() const noexcept { return fields_->event; }
  [[nodiscard]] const Tags& tags() const noexcept { return fields_->tags; }
  /// Which process, request or conversation it belongs to; empty when not given.
  [[nodiscard]] const std::string& correlation_id() const noexcept { return fields_->correlation_id; }
  /// What made it happen: an event's or a command's id; empty when not given.
  [[nodiscard]] const std::string& causation_id() const noexcept { return fields_->causation_id; }
  [[nodiscard]] TimePoint stored_at() const noexcept { return fields_->stored_at; }

  // Of the event itself:
  [[nodiscard]] const EventId& id() const noexcept { return fields_->event.id(); }
  [[nodiscard]] const std::string& type() const noexcept { return fields_->event.type(); }
  [[nodiscard]] std::string_view data() const noexcept { return fields_->event.payload(); }
  /// Whether `data` is JSON.
  [[nodiscard]] PayloadKind payload_kind() const noexcept { return fields_->event.payload_kind(); }
  [[nodiscard]] const Headers& metadata() const noexcept { return fields_->event.headers(); }
  [[nodiscard]] TimePoint occurred_at() const noexcept { return fields_->event.occurred_at(); }

 private:
  std::shared_ptr<const Fields> fields_;
};

}  // namespace postrider
