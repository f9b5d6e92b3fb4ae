// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/publisher.hpp"
#include "postrider/storage.hpp"
#include "postrider/stored_event.hpp"

namespace postrider {

/// A topic and a publisher that gets its events: what has a progress of its own.
struct PairName {
  std::string topic{};
  std::string publisher{};

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the default
  friend auto operator<=>(const PairName&, const PairName&) = default;
};

enum class PairState : std::uint8_t {
  active,
  paused,  ///< by somebody, until `resume`
  failed,  ///< by its poison policy, until `resume`
};
/// As in the table: ACTIVE, PAUSED, FAILED.
[[nodiscard]] std::string_view to_string(PairState state) noexcept;

/// A row of outbox_topic_progress, and how far it is behind.
struct PairStatus {
  PairName name{};
  PairState state = PairState::active;
  /// Everything of the topic up to here is published, or dead-lettered.
  Position position{};
  Position head{};  ///< the store's last one
  /// Positions that this pair has still to look at. Those that are not of its topic count until it has: a
  /// leader stores where an idle pair stands every ten seconds.
  std::int64_t lag_events = 0;
  /// Since when the first event behind `position` waits; zero when there is none.
  Duration lag_time{};
  std::int32_t error_count = 0;
  std::string last_error{};
  std::int64_t dead_letters = 0;
  std::string leader{};  ///< empty: nobody
  std::optional<TimePoint> leader_since{};
  std::optional<TimePoint> leader_heartbeat{};
  Epoch epoch{};
  std::optional<TimePoint> last_published_at{};
  TimePoint created_at{};
  TimePoint updated_at{};
};

/// Which pairs are meant. A publisher's name alone means all of its pairs, in whatever topic.
struct PairSelector {
  std::optional<std::string> topic{};
  std::optional<std::string> publisher{};

  [[nodiscard]] static PairSelector all() { return {}; }
  [[nodiscard]] static PairSelector pair(std::string topic, std::string publisher) {
    return {std::move(topic), std::move(publisher)};
  }
  [[nodiscard]] static PairSelector of_topic(std::string topic) { return {std::move(topic), std::nullopt}; }
  [[nodiscard]] static PairSelector of_publisher(std::string publisher) {
    return {std::nullopt, std::move(publisher)};
  }
};

/// Who leads, or is ready to.
struct LeaderStatus {
  std::string lease{};  ///< "leader" for all pairs; "node/…" for a node that leads a share
  std::string node{};
  Epoch epoch{};
  TimePoint since{};
  TimePoint heartbeat{};
  bool alive = false;  ///< its time is not over
  std::int64_t pairs = 0;
};

/// A living node that leads nothing, and takes over when it is needed.
struct StandbyStatus {
  std::string node{};
  TimePoint since{};
  TimePoint heartbeat{};
};

/// An event that a publisher did not take.
struct DeadLetter {
  PairName pair{};
  Position position{};
  std::string error{};
  TimePoint failed_at{};
};

/// The relay's management verbs. They work from any process, whether or not a relay runs in it, and reach the
/// pair's leader at once where they can (this process; PostgreSQL and SQLite), otherwise with its next
/// heartbeat. Thread-safe.
class RelayAdmin {
 public:
  explicit RelayAdmin(Storage& storage) noexcept : storage_(storage) {}

  [[nodiscard]] std::vector<PairStatus> list(const PairSelector& which = {}) const;
  [[nodiscard]] std::optional<PairStatus> find(const std::string& topic, const std::string& publisher) const;

  // Each returns how many pairs were meant; throws Error(invalid_argument) when there is none.
  /// A batch that is being published is finished, and counted. A relay on this very Storage begins no other
  /// one once the call has returned; others may, until they have heard of it.
  std::size_t pause(const PairSelector& which);
  /// ACTIVE again, errors forgotten, from where it stopped. One that pauses after a failure tries again at
  /// once.
  std::size_t resume(const PairSelector& which);
  /// Forgets errors, and ends pauses after them; FAILED ones become ACTIVE, PAUSED ones stay so.
  std::size_t reset(const PairSelector& which);
  /// Publishes next what is behind `position`: a rewind or a skip. 0 is the beginning; beyond the store's
  /// head is refused with Error(invalid_argument). Forgets errors; FAILED ones become ACTIVE (so one gets
  /// past an event that is refused), PAUSED ones stay so.
  std::size_t move_to(const PairSelector& which, Position position);

  /// Forgets how far they are: for pairs that nobody shall publish any more. Throws Error(conflict) when a
  /// living node leads one of them, which would make it again. Their dead letters stay.
  std::size_t forget(const PairSelector& which);

  /// Living ones first.
  [[nodiscard]] std::vector<LeaderStatus> leaders() const;
  /// By name. One that was ended by force is among them until its lease would have been over.
  [[nodiscard]] std::vector<StandbyStatus> standbys() const;

  /// By topic, publisher and position; those behind position `after`. With one pair, the last one's position
  /// is where the next page begins.
  [[nodiscard]] std::vector<DeadLetter> dead_letters(const PairSelector& which = {}, std::size_t limit = 1000,
                                                     Position after = Position{0}) const;
  /// How many `discard_dead_letters` would remove.
  [[nodiscard]] std::size_t count_dead_letters(const PairSelector& which,
                                               std::optional<Position> until = {}) const;
  /// Up to `until`, included. Returns how many.
  std::size_t discard_dead_letters(const PairSelector& which, std::optional<Position> until = {});

 private:
  Storage& storage_;
};

}  // namespace postrider
