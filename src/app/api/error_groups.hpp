// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/outbox_search_store.hpp"

namespace postrider::api {

/// Dead letters of one type that died of the same thing.
struct ErrorGroup {
  std::string type{};
  std::string pattern{};  ///< the error, with # for what differs from one event to the next
  /// The longest part of it that does not differ, for DeadLetterFilter::error_contains; one that no other
  /// group of the type has, when there is one. Empty when there is none at all.
  std::string contains{};
  std::int64_t events = 0;
  TimePoint first{};
  TimePoint last{};
  EventId example{};  ///< the one that died last
};

struct ErrorGroups {
  std::vector<ErrorGroup> groups{};  ///< the largest first
  std::int64_t others = 0;           ///< in groups beyond the bound
};

/// Numbers, and words with digits in them such as ids, become #; not the status after "HTTP", nor the host of
/// an address.
[[nodiscard]] std::string error_pattern(std::string_view error);

/// As the API says it, with the filter that selects its events.
[[nodiscard]] boost::json::object group_json(const ErrorGroup& group);

/// `errors` latest first; at most `most` groups are kept.
[[nodiscard]] ErrorGroups group_errors(const std::vector<DeadError>& errors, std::size_t most);

}  // namespace postrider::api
