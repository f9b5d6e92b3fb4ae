// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/sqlite/connection.hpp"
#include "postrider/event.hpp"
#include "storage/row_decoder.hpp"

namespace postrider::sqlite {

/// The columns that every table of events has, in the order that the functions below count on.
inline constexpr std::string_view event_columns =
    "event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, payload, payload_bytes, "
    "headers, occurred_at, created_at";
inline constexpr int event_column_count = 11;
inline constexpr int event_type_column = 1;

[[nodiscard]] inline std::int64_t micros(TimePoint time) {
  return time.time_since_epoch().count();
}
[[nodiscard]] inline Value text_or_null(std::string_view text) {
  return text.empty() ? Value(nullptr) : Value(text);
}

/// Binds them as the first parameters. What is bound is borrowed: event and key must outlive the run.
void bind_event(Statement& statement, const Event& event, std::string_view ordering_key,
                std::int64_t created_at);
/// Reads them as the first columns of a row; borrowed until the next step.
[[nodiscard]] OutboxColumns read_event(const Statement& row);

}  // namespace postrider::sqlite
