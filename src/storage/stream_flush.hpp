// SPDX-License-Identifier: Apache-2.0
// What one flush of the event store decides, without a database: which requests are accepted, and at which
// positions. The stores carry it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/error.hpp"
#include "storage/stream_keys.hpp"
#include "storage/stream_store.hpp"

namespace postrider {

/// A row to be inserted.
struct NewStreamRow {
  std::int64_t position = 0;
  const Event* event = nullptr;
  const AppendEvent* append = nullptr;
  std::string tags{};                  ///< as `encode_tags` writes them
  std::vector<std::int64_t> hashes{};  ///< for event_tags

  /// Of all that can be long: what a page counts.
  [[nodiscard]] std::int32_t size() const noexcept;
};

/// Asks for the newest event that has all hashes and stands in (after, until].
struct StreamProbe {
  const KeyGroup* hashes = nullptr;
  std::int64_t after = 0;
  std::int64_t until = 0;
  std::size_t request = 0;
};

/// The newest event of the store; position 0 when there is none.
struct StreamHead {
  std::int64_t position = 0;
  std::string type{};
};

/// Use: under the store's lock ask for the head and for every one of `probes()`, tell with `found` and
/// `head`; as long as `next_round()` says so, ask for the probes again; then `decide`, insert `rows()`,
/// commit, and hand out `verdicts()`.
class StreamFlush {
 public:
  /// The requests are borrowed.
  StreamFlush(std::span<const AppendRequest> requests, const StreamKeys& keys);

  [[nodiscard]] const std::vector<StreamProbe>& probes() const noexcept { return probes_; }
  /// An answer to the probe: a candidate, judged here by the real type and tags.
  void found(std::size_t probe, std::int64_t position, std::string_view type, std::string_view tags);
  /// True when hits were nothing but equal hashes, so that the probes, which are fewer now and end below
  /// those hits, have to be asked again.
  [[nodiscard]] bool next_round();

  void decide(const StreamHead& head);
  [[nodiscard]] std::span<const NewStreamRow> rows() const noexcept { return rows_; }
  [[nodiscard]] std::vector<AppendVerdict> verdicts() && { return std::move(verdicts_); }

 private:
  [[nodiscard]] const NewStreamRow* conflict_here(std::size_t request) const;
  void accept(std::size_t request, bool remember);

  std::span<const AppendRequest> requests_;
  StreamKeys keys_;
  std::vector<std::vector<KeyGroup>> groups_;  // of each request; the probes point into them
  std::vector<StreamProbe> probes_;
  std::vector<StreamProbe> again_;
  std::vector<bool> conflicts_;  // known from the database
  std::vector<AppendVerdict> verdicts_;
  std::vector<NewStreamRow> rows_;
  std::unordered_map<std::int64_t, std::vector<std::size_t>> by_hash_;  // places in rows_
  std::int64_t last_ = 0;
};

/// Flushes all of them together; when the database refuses that for good, halves them until the culprits
/// stand alone and have the refusal as their verdict. What concerns all (no connection, no room, no tables,
/// in doubt) is thrown when nothing was written before; else it is the verdict of those that are left.
[[nodiscard]] std::vector<AppendVerdict> flush_or_part(
    std::span<const AppendRequest> requests,
    const std::function<std::vector<AppendVerdict>(std::span<const AppendRequest>)>& flush);

/// Somebody else has the store's lock, and was waited for as long as allowed. Not `contention`: he would be
/// waited for again, as often as that is repeated.
[[nodiscard]] Error append_timeout();

/// For conditions: 0 when not given.
[[nodiscard]] std::int64_t after_of(const AppendCondition& condition) noexcept;

}  // namespace postrider
