// SPDX-License-Identifier: Apache-2.0
// Rows of the table events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "postrider/stored_event.hpp"
#include "storage/row_decoder.hpp"

namespace postrider {

/// The column `tags`: a JSON array of tags as `Tag::encode` writes them.
[[nodiscard]] std::string encode_tags(const Tags& tags);
/// Throws Error(schema) for anything else.
[[nodiscard]] Tags decode_tags(std::string_view text);

/// Borrowed from the driver's result. An empty text stands for NULL.
struct StreamColumns {
  std::int64_t position = 0;
  std::string_view event_id{};
  std::string_view type{};
  std::string_view tags{};
  PayloadKind data_kind = PayloadKind::json;
  std::string_view data{};
  std::string_view metadata{};
  std::string_view correlation_id{};
  std::string_view causation_id{};
  TimePoint occurred_at{};
  TimePoint stored_at{};
};

/// Throws Error(schema) naming the position: a row of a foreign hand cannot be skipped, whoever reads decides
/// by what there is.
[[nodiscard]] StoredEvent decode_stream_row(const StreamColumns& columns);

}  // namespace postrider
