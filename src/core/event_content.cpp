// SPDX-License-Identifier: Apache-2.0
#include "core/event_content.hpp"

#include <functional>
#include <initializer_list>
#include <string_view>

namespace postrider {

std::size_t content_of(const Event& event) {
  const std::hash<std::string_view> hash;
  std::size_t content = std::hash<std::int64_t>{}(event.occurred_at().time_since_epoch().count());
  for (const std::string_view part :
       std::initializer_list<std::string_view>{event.type(), event.aggregate_type(), event.aggregate_id(),
                                               event.tenant_id(), event.headers_json(), event.payload()}) {
    content = content * 31 + hash(part);
  }
  return content * 31 + static_cast<std::size_t>(event.payload_kind());
}

}  // namespace postrider
