// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "app/api/entry_json.hpp"
#include "app/http/message.hpp"
#include "storage/entry_store.hpp"

namespace postrider::api {

/// The parameters of GET /v1/events, or all that is wrong with them.
[[nodiscard]] std::variant<EntryQuery, Errors> parse_query(const http::Fields& parameters);

/// A place in the pages of one query. Opaque to clients.
[[nodiscard]] std::string encode_cursor(const EntryPosition& position, const EntryQuery& query);
/// Nothing when it is none of ours, or of another query; limits may differ.
[[nodiscard]] std::optional<EntryPosition> decode_cursor(std::string_view text, const EntryQuery& query);

/// The id of an entry, as clients know it.
[[nodiscard]] std::optional<EntryId> parse_id(std::string_view text);

}  // namespace postrider::api
