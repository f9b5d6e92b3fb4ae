// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/stored_event.hpp"

namespace postrider {

/// Grows whenever a pair of topic and publisher goes to another node, and when somebody moves its position.
/// Who writes with a lower one than stored comes too late.
enum class Epoch : std::int64_t {};

enum class PublishMode : std::uint8_t {
  batch,       ///< `publish_batch` gets up to `batch_size` events
  individual,  ///< one at a time
};

/// Which delivery this is. Valid during the call.
struct PublishContext {
  std::string_view topic{};
  /// Send it along as a header: a receiver that remembers the highest one can turn away a node that was
  /// paused, lost its pairs, and does not know yet.
  Epoch epoch{};
  std::string_view node{};
  /// How many times the first event of the batch has failed before.
  int failures = 0;
};

/// What became of a batch: the first `count` events are with the receiver. Anything else is tried again, from
/// the first that is not.
class PublishResult {
 public:
  [[nodiscard]] static PublishResult all() { return {}; }
  /// The event behind the first `count` was refused: it counts against it, and the pair's policy decides in
  /// the end (PairOptions::poison).
  [[nodiscard]] static PublishResult refused(std::size_t count, std::string reason) {
    return {Kind::refused, count, std::move(reason)};
  }
  /// The receiver is away or busy, which is no event's fault: tried again for as long as it takes. When it
  /// has said when to come back, a guard before its sink waits for so long (see postrider/sink.hpp).
  [[nodiscard]] static PublishResult unavailable(std::size_t count, std::string reason,
                                                 Duration retry_after = {}) {
    PublishResult result{Kind::unavailable, count, std::move(reason)};
    result.retry_after_ = retry_after;
    return result;
  }
  /// The receiver has answered that it failed with the event behind the first `count`, and not whether that
  /// lies in the event (HTTP 500). `unavailable`, and a guard before its sink tells: it is `refused` when the
  /// receiver has taken other events since it failed with this one before, and not `unclear` any more when it
  /// had taken none of late.
  [[nodiscard]] static PublishResult unclear(std::size_t count, std::string reason,
                                             Duration retry_after = {}) {
    PublishResult result = unavailable(count, std::move(reason), retry_after);
    result.unclear_ = true;
    return result;
  }
  /// The same of a batch with another number of events before the one that it speaks of, and nothing about
  /// those behind it.
  [[nodiscard]] PublishResult with_count(std::size_t count) const {
    PublishResult result = *this;
    if (kind_ != Kind::all) result.count_ = count;
    result.behind_.clear();
    return result;
  }
  /// The same, and of those behind the one that it speaks of the receiver has these as well: ascending
  /// numbers in the batch, the first is 0. A pair sends them again nevertheless; a guard before a sink, which
  /// puts events of several callers into a batch, tells each of them.
  [[nodiscard]] PublishResult with_behind(std::vector<std::size_t> taken) const {
    PublishResult result = *this;
    if (kind_ != Kind::all) result.behind_ = std::move(taken);
    return result;
  }

  enum class Kind : std::uint8_t { all, refused, unavailable };
  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  /// How many of the given `size` are with the receiver. None, when a failure says that it has got more than
  /// that: who cannot count is not believed.
  [[nodiscard]] std::size_t count(std::size_t size) const noexcept {
    if (kind_ == Kind::all) return size;
    return count_ > size ? 0 : count_;
  }
  [[nodiscard]] const std::vector<std::size_t>& behind() const noexcept { return behind_; }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  /// Zero when the receiver has said nothing.
  [[nodiscard]] Duration retry_after() const noexcept { return retry_after_; }
  [[nodiscard]] bool is_unclear() const noexcept { return unclear_; }

 private:
  PublishResult() = default;
  PublishResult(Kind kind, std::size_t count, std::string reason)
      : kind_(kind), count_(count), reason_(std::move(reason)) {}
  Kind kind_ = Kind::all;
  std::size_t count_ = 0;
  std::string reason_{};
  Duration retry_after_{};
  bool unclear_ = false;
  std::vector<std::size_t> behind_{};
};

/// Where a topic's events go. One object may serve many topics.
class Publisher {
 public:
  virtual ~Publisher() = default;

  /// Sends events, in this order; they are in the order of their positions. Returns when they are safe with
  /// the receiver, and for as long takes one thread of the relay. Each may come again after a crash or a
  /// failure: at-least-once. What it throws is a refusal of an event that is not known (the relay then tries
  /// one at a time), or, as an Error that is `retryable()`, the receiver's absence.
  [[nodiscard]] virtual PublishResult publish_batch(std::span<const StoredEvent> events,
                                                    const PublishContext& context) = 0;
  /// Its name in the database; the same during its life. 1 to 128 characters.
  [[nodiscard]] virtual std::string name() const = 0;
  /// While false nothing is given to it, and nothing counts as a failure. Quick; called before each batch.
  [[nodiscard]] virtual bool healthy() const { return true; }
  [[nodiscard]] virtual PublishMode mode() const noexcept { return PublishMode::batch; }
  /// How many threads may be in `publish_batch` at the same time, for different topics. With 1 it need not be
  /// thread-safe.
  [[nodiscard]] virtual std::size_t parallel() const noexcept { return 1; }
};

}  // namespace postrider
