// SPDX-License-Identifier: Apache-2.0
#include "core/event_content.hpp"

#include <array>
#include <functional>
#include <string_view>

namespace postrider {

namespace {

/// The payload last, so that a comparison comes to it when all else is the same.
std::array<std::string_view, 6> parts_of(const Event& event) {
  return {event.type(),      event.aggregate_type(), event.aggregate_id(),
          event.tenant_id(), event.headers_json(),   event.payload()};
}

}  // namespace

std::size_t content_of(const Event& event) {
  const std::hash<std::string_view> hash;
  std::size_t content = std::hash<std::int64_t>{}(event.occurred_at().time_since_epoch().count());
  for (const std::string_view part : parts_of(event)) content = content * 31 + hash(part);
  return content * 31 + static_cast<std::size_t>(event.payload_kind());
}

bool same_content(const Event& a, const Event& b) {
  if (a.payload().data() == b.payload().data()) return true;  // copies share their fields
  return a.occurred_at() == b.occurred_at() && a.payload_kind() == b.payload_kind() &&
         parts_of(a) == parts_of(b);
}

}  // namespace postrider
