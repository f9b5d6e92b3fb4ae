// SPDX-License-Identifier: Apache-2.0
// Entries as JSON: checked when they come in, whole when they go out.
#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/http/message.hpp"
#include "storage/entry_store.hpp"

namespace postrider::api {

using Errors = std::vector<http::FieldError>;

/// Reads one entry. Everything that is wrong with it is told, not only the first thing; `field` is a JSON
/// pointer within the entry. `now` is the timestamp of an entry without one. Members that we do not know
/// are kept as they are.
[[nodiscard]] std::variant<Entry, Errors> parse_entry(const boost::json::value& json, TimePoint now);
/// The same JSON with \u0000 for each half of a surrogate pair that stands alone, which the parser would
/// refuse together with everything around it; nothing when there is none. `parse_entry` refuses what has it.
[[nodiscard]] std::optional<std::string> without_lone_surrogates(std::string_view json);

/// Appends the entry as one JSON object, with `id` and `receivedAt`.
void append_entry(std::string& out, const StoredEntry& stored);

/// Appends a JSON string, quotes and all.
void append_text(std::string& out, std::string_view text);

}  // namespace postrider::api
