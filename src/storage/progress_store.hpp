// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/relay_admin.hpp"
#include "storage/lease_store.hpp"

namespace postrider {

struct NewPair {
  PairName name{};
  Position start{};
};

/// A pair as its leader knows it.
struct LedPair {
  PairName name{};
  Epoch epoch{};
  Position position{};
  PairState state = PairState::active;
  std::int32_t error_count = 0;
};

enum class Taking : std::uint8_t {
  any,      ///< whoever leads them: for the one leader of all
  orphans,  ///< led by nobody, or by a node that is dead
};

/// One pair's way forward: refused unless it stands at `from` and its epoch is the writer's.
struct ProgressStep {
  PairName name{};
  Epoch epoch{};
  Position from{};
  Position to{};
  bool published = true;  ///< false: only looked at
  /// The event at `to` goes to the dead letters, with this error.
  std::optional<std::string> dead{};
};

/// What the error of a failure begins with that is no event's fault; then comes the publisher's own word.
inline constexpr std::string_view receiver_is_away = "the receiver is unavailable";

struct PairFailure {
  PairName name{};
  Epoch epoch{};
  std::string error{};
  bool counted = true;
  bool stop = false;  ///< FAILED from now on
};

/// Who leads how many, as seen by one of them.
struct PairCensus {
  struct Share {
    std::string leader{};  ///< empty: nobody
    std::int64_t pairs = 0;
    /// Grows when somebody moves one of them; so the leader sees by two numbers that all are as it knows
    /// them.
    std::int64_t epochs = 0;
  };
  std::vector<Share> shares{};
  /// The asker's pairs that are not ACTIVE.
  std::vector<LedPair> at_rest{};
  /// Led by nobody, or by a node that is dead.
  std::vector<PairName> orphans{};
};

/// The table outbox_topic_progress, as verbs of those who publish. Thread-safe. All take batches: one
/// statement for hundreds of pairs, where the database can.
class ProgressStore {
 public:
  virtual ~ProgressStore() = default;

  /// Makes the rows that are missing, ACTIVE and led by nobody, and returns how many. Those that are there
  /// stay as they are.
  virtual std::size_t add(std::span<const NewPair> pairs) = 0;
  /// Raises the epochs of these pairs and leads them from now on, as long as the fence's lease is held.
  /// Returns those that were taken, as they are now: nobody else moves them any more. `dead` are nodes known
  /// to be so although their time is not over.
  [[nodiscard]] virtual std::vector<LedPair> take(const LeaseFence& fence, Taking which,
                                                  std::span<const PairName> pairs,
                                                  std::span<const std::string> dead) = 0;
  /// What the node leads.
  [[nodiscard]] virtual std::vector<LedPair> led(std::string_view node) = 0;
  /// Those of them that this node leads are led by nobody from now on.
  virtual void give_back(std::string_view node, std::span<const PairName> pairs) = 0;
  /// Whether each was written. A step that moves on clears the pair's errors.
  [[nodiscard]] virtual std::vector<bool> advance(std::span<const ProgressStep> steps) = 0;
  /// Whether each was written.
  [[nodiscard]] virtual std::vector<bool> fail(std::span<const PairFailure> failures) = 0;
  [[nodiscard]] virtual PairCensus census(std::string_view node, std::span<const std::string> dead) = 0;
};

enum class PairChange : std::uint8_t { pause, resume, reset };

/// The same table and outbox_dead_letter, as verbs of those who look after it.
class RelayAdminStore {
 public:
  virtual ~RelayAdminStore() = default;

  [[nodiscard]] virtual std::vector<PairStatus> list(const PairSelector& which) = 0;
  /// Returns how many pairs were meant, changed or not. Where errors are forgotten the epoch is raised, so
  /// that the leader begins anew and does not wait for its next attempt.
  virtual std::size_t change(const PairSelector& which, PairChange what) = 0;
  /// Raises their epochs too, so that what their leaders are about to write is refused. Errors are forgotten,
  /// FAILED ones are ACTIVE again.
  virtual std::size_t move_to(const PairSelector& which, Position position) = 0;
  /// Removes the pair's row, if this is who leads it (empty: nobody). False when it is not, or there is none.
  /// Its dead letters stay.
  virtual bool forget(const PairName& pair, std::string_view leader) = 0;
  /// By topic, publisher and position; those behind `after`.
  [[nodiscard]] virtual std::vector<DeadLetter> dead_letters(const PairSelector& which, std::size_t limit,
                                                             Position after) = 0;
  /// Up to `until`, included, as `discard` removes them.
  [[nodiscard]] virtual std::size_t count_dead(const PairSelector& which, std::optional<Position> until) = 0;
  virtual std::size_t discard(const PairSelector& which, std::optional<Position> until) = 0;
};

}  // namespace postrider
