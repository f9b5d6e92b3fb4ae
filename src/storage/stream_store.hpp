// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "postrider/append_event.hpp"
#include "postrider/append_result.hpp"
#include "postrider/stream_query.hpp"
#include "postrider/transaction.hpp"

namespace postrider {

/// One caller's append: all or nothing. Borrowed for the time of the call.
struct AppendRequest {
  std::span<const AppendEvent> events{};  ///< at least one
  const AppendCondition* condition = nullptr;
};

/// What became of one request of several: a refusal by the database of this one alone is its own.
using AppendVerdict = std::variant<Appended, Conflict, std::exception_ptr>;

struct ReadRequest {
  const Query* query = nullptr;
  Position after{0};                                         ///< not included
  Position until{std::numeric_limits<std::int64_t>::max()};  ///< included
  std::size_t limit = 1000;
  std::size_t max_bytes = 4U << 20U;  ///< a page ends behind the event that reaches it
  bool backwards = false;             ///< from `until` down to behind `after`
  /// When there is more behind the page: called with its `seen`, by stores that know it before they have made
  /// events of its rows, so that the next page can be asked for meanwhile. Quick; not another call of the
  /// store.
  std::function<void(Position)> located{};
};

struct ReadPage {
  std::vector<StoredEvent> events{};
  /// The last position of the store (0 when it is empty) in the snapshot that the page was read from. Because
  /// positions come in commit order, later pages with `until = head` belong to the same snapshot.
  Position head{};
  /// There may be more behind the last one.
  bool more = false;
  /// How far this page has looked: whoever goes on, goes on behind (backwards: below) this.
  Position seen{};
};

/// The tables events and event_tags, as verbs. Thread-safe. The conformance suite is the definition.
///
/// - Positions are given under one lock per store, held until commit, so that they come in commit order; the
///   condition is checked under the same lock, by the predicate that reads use, against all that is committed
///   and against what the same call has appended before.
/// - A condition whose `after` is beyond the last position guards nothing: its request is refused
///   (Error(invalid_argument)).
class StreamStore {
 public:
  virtual ~StreamStore() = default;

  /// Appends in one transaction of its own; one verdict per request, in their order; later ones see earlier
  /// ones. Throws when nothing at all was written (or nobody knows: `in_doubt()`).
  virtual std::vector<AppendVerdict> append(std::span<const AppendRequest> requests) = 0;
  /// Inside the caller's transaction: holds up all other appends to the store until that ends. Never an
  /// exception_ptr: throws.
  virtual AppendVerdict append(Tx& tx, const AppendRequest& request) = 0;

  [[nodiscard]] virtual ReadPage read(const ReadRequest& request) = 0;
  /// The events at these positions (ascending, each once, at most 10,000) that are there, in one read. The
  /// page ends behind the event that reaches `max_bytes`; whoever goes on then asks for those behind `seen`.
  [[nodiscard]] virtual ReadPage read_at(std::span<const Position> positions, std::size_t max_bytes) = 0;
  [[nodiscard]] virtual Position head() = 0;

  /// Throws Error(schema) unless the tables are there in this library's version.
  virtual void check_schema() = 0;
};

}  // namespace postrider
