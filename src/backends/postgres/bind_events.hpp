// SPDX-License-Identifier: Apache-2.0
// Columns that every table of events has, as arrays for `unnest`. `Row` has a member `event`; `Binder` is
// Params, or what writes the same as text.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "backends/postgres/wire.hpp"
#include "postrider/event.hpp"

namespace postrider::postgres {

/// One column of all rows; an empty text stands for NULL.
template <class Binder, class Row, class Get>
void bind_texts(Binder& params, Oid type, std::span<const Row> rows, const Get& get) {
  if (std::all_of(rows.begin(), rows.end(), [&](const Row& row) { return get(row).empty(); })) {
    params.null();  // one NULL array instead of many NULL elements
    return;
  }
  params.begin_array(type, rows.size());
  for (const Row& row : rows) {
    const std::string_view value = get(row);
    if (value.empty()) {
      params.element_null();
    } else {
      params.element(value);
    }
  }
  params.end_array();
}

/// The payload when it is JSON, else nothing.
[[nodiscard]] inline std::string_view json_payload(const Event& event) {
  return event.payload_kind() == PayloadKind::json ? event.payload() : std::string_view{};
}

/// The payloads that are not JSON.
template <class Binder, class Row>
void bind_bytes(Binder& params, std::span<const Row> rows) {
  const auto is_json = [](const Row& row) { return row.event->payload_kind() == PayloadKind::json; };
  if (std::all_of(rows.begin(), rows.end(), is_json)) {
    params.null();
    return;
  }
  params.begin_array(oid::bytea, rows.size());
  for (const Row& row : rows) {
    if (is_json(row)) {
      params.element_null();
    } else {
      params.element(row.event->payload());  // an empty payload of bytes is a payload
    }
  }
  params.end_array();
}

/// occurred_at, then deliver_at.
template <class Binder, class Row>
void bind_times(Binder& params, std::span<const Row> rows) {
  params.begin_array(oid::timestamptz, rows.size());
  for (const Row& row : rows) params.element_timestamp(row.event->occurred_at());
  params.end_array();
  if (std::none_of(rows.begin(), rows.end(),
                   [](const Row& row) { return row.event->deliver_at().has_value(); })) {
    params.null();
    return;
  }
  params.begin_array(oid::timestamptz, rows.size());
  for (const Row& row : rows) {
    if (const std::optional<TimePoint> at = row.event->deliver_at()) {
      params.element_timestamp(*at);
    } else {
      params.element_null();
    }
  }
  params.end_array();
}

/// How far one statement goes: bounds the memory of one message, and keeps the largest payloads (1 MiB each)
/// far from the server's limit of 1 GiB.
template <class Row>
[[nodiscard]] std::size_t batch_end(std::span<const Row> rows, std::size_t from,
                                    std::size_t most_rows = 5000) {
  constexpr std::size_t most_bytes = 64 << 20;
  std::size_t bytes = 0;
  std::size_t end = from;
  while (end < rows.size() && end - from < most_rows && (end == from || bytes < most_bytes)) {
    bytes += rows[end].event->payload().size() + rows[end].event->headers_json().size();
    ++end;
  }
  return end;
}

}  // namespace postrider::postgres
