// SPDX-License-Identifier: Apache-2.0
// Values as the management API writes and reads them.
#pragma once

#include <boost/json/fwd.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "app/http/message.hpp"
#include "postrider/clock.hpp"

namespace postrider::api {

[[nodiscard]] std::string time_text(TimePoint time);
[[nodiscard]] boost::json::value time_or_null(const std::optional<TimePoint>& time);
[[nodiscard]] boost::json::value text_or_null(std::string_view text);  ///< null when it is empty
[[nodiscard]] double seconds(Duration time);

/// As json::serialize, but for numbers with a fraction: 12.5, where that writes 1.25E1. Exponents are for
/// those below 1e-6, and from 1e21 on.
[[nodiscard]] std::string serialized(const boost::json::value& value);

[[nodiscard]] http::Response json_response(const boost::json::object& body, int status = 200);

/// The request's body: an object with these members and no others, each once. An empty body is an empty
/// object. Throws Refusal.
[[nodiscard]] boost::json::object json_body(const http::Request& request,
                                            std::span<const std::string_view> members);

}  // namespace postrider::api
