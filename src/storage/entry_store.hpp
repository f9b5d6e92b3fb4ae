// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/entry_limits.hpp"
#include "postrider/clock.hpp"

namespace postrider {

/// Given by the database. Grows, with gaps; two entries never share one.
enum class EntryId : std::int64_t {};

/// What a logger sent. Texts are UTF-8 without NUL; an empty one means that there is none.
struct Entry {
  std::string application_id;
  std::string correlation_id;
  std::string process_name;
  std::string process_status;
  std::string step;
  std::string details;
  std::string target_system;
  std::string originating_system;
  std::string user_id;
  /// Unique within the application.
  std::string idempotency_key;
  /// One JSON object, with members that we do not know.
  std::string extras;
  /// By the sender's clock. From the year 1000 to 9999.
  TimePoint occurred_at{};

  /// Roughly what it takes in memory and on the wire.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return application_id.size() + correlation_id.size() + process_name.size() + process_status.size() +
           step.size() + details.size() + target_system.size() + originating_system.size() + user_id.size() +
           idempotency_key.size() + extras.size() + 64;
  }
};

struct InsertedEntry {
  EntryId id{};
  bool duplicate = false;  ///< the key was there before: `id` is that of the first
};

struct StoredEntry {
  EntryId id{};
  Entry entry{};
  TimePoint received_at{};
};

/// A place in the order of pages: by time, then by id.
struct EntryPosition {
  TimePoint occurred_at{};
  EntryId id{};
  friend bool operator==(const EntryPosition&, const EntryPosition&) = default;
};

/// All that is given must hold.
struct EntryQuery {
  std::optional<std::string> correlation_id{};
  std::optional<std::string> application_id{};
  std::optional<TimePoint> from{};
  std::optional<TimePoint> until{};  ///< not included
  /// Each stands in process name, step or details, as a whole word, in upper or lower case (beyond ASCII as
  /// far as the database's locale knows). From `search_words`; at least one has three characters.
  std::vector<std::string> words{};
  bool newest_first = false;
  std::optional<EntryPosition> after{};  ///< behind this one, in the query's order
  std::size_t limit = 100;
};

struct EntryPage {
  std::vector<StoredEntry> entries;
  /// There may be more behind the last one.
  bool more = false;
};

/// The table event_log_entries, as verbs. Thread-safe.
class EntryStore {
 public:
  virtual ~EntryStore() = default;

  /// Stores all, in a transaction of its own, or throws and has stored none. The answers are in the order of
  /// the entries. A key that is there already, or comes a second time in the same call, answers with the
  /// first one's id and changes nothing. When the outcome is unknown (`in_doubt()`), entries with keys can
  /// simply be sent again.
  virtual std::vector<InsertedEntry> insert(std::span<const Entry> entries) = 0;
  /// In order of time. A page is shorter than the limit when its entries are large; `more` tells.
  virtual EntryPage find(const EntryQuery& query) = 0;
  virtual std::optional<StoredEntry> get(EntryId id) = 0;

  /// How many entries happened before `time`. Walks over their part of an index.
  [[nodiscard]] virtual std::int64_t count_before(TimePoint time) = 0;
  /// Removes the oldest entries that happened before `time`, at most `limit`, and their words, in a
  /// transaction of its own. Returns how many. Fewer than `limit`: there are no more, but for those that
  /// another node is just removing. Their keys are free again.
  virtual std::int64_t purge_before(TimePoint time, std::size_t limit) = 0;
};

/// The words of a text that somebody searches for, each once, in lower case as far as ASCII goes. ASCII
/// punctuation and white space part them.
[[nodiscard]] std::vector<std::string> search_words(std::string_view text);

/// Words of fewer characters are not worth an index entry everywhere: they narrow a search, but do not make
/// one.
inline constexpr std::size_t least_indexed_word = 3;

}  // namespace postrider
