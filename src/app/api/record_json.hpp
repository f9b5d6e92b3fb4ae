// SPDX-License-Identifier: Apache-2.0
// Rows of the engines as the management API shows them.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/event_log.hpp"
#include "postrider/outbox_admin.hpp"
#include "postrider/projection.hpp"
#include "postrider/queue_admin.hpp"
#include "postrider/stored_event.hpp"

namespace postrider::api {

/// Adds `payload` (the text as it is) for JSON, `payloadBase64` for bytes and for text that is no UTF-8.
void add_payload(boost::json::object& object, PayloadKind kind, std::string_view payload);
/// An object; null when there are none, the text itself when it is not an object of texts.
[[nodiscard]] boost::json::value headers_value(std::string_view headers_json);
/// Any program may have written it: what is no UTF-8 becomes U+FFFD.
[[nodiscard]] boost::json::value shown(std::string_view text);

/// The attempts that failed, oldest first.
[[nodiscard]] boost::json::array history_json(const std::vector<FailedAttempt>& history);

/// Without its payload, headers and history: for lists.
[[nodiscard]] boost::json::object brief_json(const OutboxRecord& record);
[[nodiscard]] boost::json::object whole_json(const OutboxRecord& record);
[[nodiscard]] boost::json::object brief_json(const QueueRecord& record);
[[nodiscard]] boost::json::object whole_json(const QueueRecord& record);
[[nodiscard]] boost::json::object brief_json(const LogEntry& entry);
[[nodiscard]] boost::json::object whole_json(const LogEntry& entry);
[[nodiscard]] boost::json::value results_json(const std::vector<HandlerResult>& results);
[[nodiscard]] boost::json::object projection_json(const ProjectionStatus& status);
[[nodiscard]] boost::json::object stored_json(const StoredEvent& event);

[[nodiscard]] std::string base64(std::string_view bytes);
/// Throws Refusal for what is none; `name` is the member's.
[[nodiscard]] std::string from_base64(std::string_view name, std::string_view text);

}  // namespace postrider::api
