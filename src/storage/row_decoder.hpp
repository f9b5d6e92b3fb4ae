// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/outbox_store.hpp"

namespace postrider {

/// The columns of a claimed row, borrowed from the driver's result. An empty text stands for NULL.
struct OutboxColumns {
  std::string_view event_id{};
  std::string_view event_type{};
  std::string_view aggregate_type{};
  std::string_view aggregate_id{};
  std::string_view tenant_id{};
  std::string_view ordering_key{};
  std::string_view headers_json{};
  PayloadKind payload_kind = PayloadKind::json;
  std::string_view payload{};  ///< the bytes themselves, not the driver's escape of them
  TimePoint occurred_at{};
  TimePoint created_at{};
  std::int64_t attempts = 0;
  std::int64_t token = 0;  ///< as the claim left it
};

/// Makes the event of a row. A row that is no valid event (any program may insert) comes back with
/// `decode_error` instead: one bad row must not hold up the others.
///
/// The ordering key becomes the event's own, also when it came from the outbox's options: the column is what
/// orders. The time of delivery is not kept beside `available_at`, so `deliver_at()` is not set.
///
/// The id alone is not forgiven: a row without a valid EventId could not even be marked DEAD. The tables'
/// CHECK keeps such rows out; where one is found all the same this throws Error(schema).
[[nodiscard]] ClaimedEvent decode_row(const OutboxColumns& columns);

/// An event made of the columns that all tables of events have; `attempts` and `token` are not looked at.
/// Empty with `error` set when the row is no valid event, its id included.
struct DecodedEvent {
  std::optional<Event> event{};
  std::string error{};
};
[[nodiscard]] DecodedEvent decode_event(const OutboxColumns& columns);

/// What `last_error` keeps of a message: repaired to valid UTF-8 without NUL, cut at `max_error_chars`
/// characters.
[[nodiscard]] std::string stored_error(std::string_view message);

}  // namespace postrider
