// SPDX-License-Identifier: Apache-2.0
// What the conformance tests of the event store share: short ways to say things.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "storage/conformance/store_fixture.hpp"
#include "storage/stream_store.hpp"

namespace postrider::conformance {

using Positions = std::vector<std::int64_t>;

/// A type and tags in their written form: happened("Paid", {"order=1"}).
inline AppendEvent happened(const std::string& type, std::initializer_list<const char*> tags = {}) {
  AppendEventBuilder builder = AppendEvent::builder(type);
  for (const char* const tag : tags) builder.tag(Tag::decode(tag));
  return builder.build();
}

/// What a verdict says, for comparisons: "appended 1-2", "conflict 1 Paid", or the refusal.
inline std::string said(const AppendVerdict& verdict) {
  if (const auto* appended = std::get_if<Appended>(&verdict)) {
    return "appended " + std::to_string(static_cast<std::int64_t>(appended->first)) + "-" +
           std::to_string(static_cast<std::int64_t>(appended->last));
  }
  if (const auto* conflict = std::get_if<Conflict>(&verdict)) {
    return "conflict " + std::to_string(static_cast<std::int64_t>(conflict->position)) + " " + conflict->type;
  }
  try {
    std::rethrow_exception(std::get<std::exception_ptr>(verdict));
  } catch (const Error& error) {
    return error.what();
  }
}

inline AppendVerdict append_to(StreamStore& store, const std::vector<AppendEvent>& events,
                               const std::optional<AppendCondition>& condition = {}) {
  const AppendRequest request{.events = events, .condition = condition.has_value() ? &*condition : nullptr};
  std::vector<AppendVerdict> verdicts = store.append({&request, 1});
  EXPECT_EQ(verdicts.size(), 1U);
  return std::move(verdicts.at(0));
}

inline Positions positions_of(const std::vector<StoredEvent>& events) {
  Positions positions;
  for (const StoredEvent& event : events) positions.push_back(static_cast<std::int64_t>(event.position()));
  return positions;
}

class StreamConformance : public StoreConformance {
 protected:
  [[nodiscard]] StreamStore& store() { return storage().stream_store(); }

  std::string append(const std::vector<AppendEvent>& events,
                     const std::optional<AppendCondition>& condition = {}) {
    return said(append_to(store(), events, condition));
  }
  std::string append_in(Tx& tx, const std::vector<AppendEvent>& events,
                        const std::optional<AppendCondition>& condition = {}) {
    const AppendRequest request{.events = events, .condition = condition.has_value() ? &*condition : nullptr};
    return said(store().append(tx, request));
  }
  [[nodiscard]] ReadPage read(const Query& query, ReadRequest request = {}) {
    request.query = &query;
    return store().read(request);
  }
  [[nodiscard]] Positions found(const Query& query, const ReadRequest& request = {}) {
    return positions_of(read(query, request).events);
  }
  [[nodiscard]] Positions everything() { return found(Query::all()); }
};

}  // namespace postrider::conformance
