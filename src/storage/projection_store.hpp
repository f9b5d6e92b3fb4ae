// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/projection.hpp"
#include "postrider/transaction.hpp"

namespace postrider {

/// The right to run a projection, and where it stands. Ends when its time is over and somebody else takes it.
struct ProjectionLease {
  std::int64_t epoch = 0;
  LogSeq position{};
  std::int32_t failures = 0;
  bool live = false;
};

/// Who writes: one whose epoch is over changes nothing.
struct ProjectionFence {
  std::string_view name{};
  int version = 0;
  std::int64_t epoch = 0;
};

struct ProjectionAdvance {
  LogSeq from{};  ///< where the writer thinks that the projection stands
  LogSeq to{};
  Duration lease{};                         ///< renewed with it
  std::optional<std::string> skip_error{};  ///< `to` was not digested: note it as skipped, with this error
};

struct ProjectionFailure {
  std::string error{};
  bool counted = true;  ///< as a failure of the entry behind the position
  bool stop = false;    ///< FAILED from now on
};

enum class ProjectionChange : std::uint8_t { enroll, pause, resume, switch_to, forget };
enum class ProjectionChanged : std::uint8_t {
  done,
  refused,
  busy,  ///< somebody runs it
  unknown,
};
/// When a projection may be taken.
enum class ProjectionTake : std::uint8_t {
  when_free,  ///< ACTIVE, and nobody else has it (this owner may)
  anyway,     ///< whoever has it, and whatever its state; that stays as it is
};

/// The tables event_projection and event_projection_skipped, as verbs. Thread-safe.
class ProjectionStore {
 public:
  virtual ~ProjectionStore() = default;

  /// Takes the right to run a projection for `lease` and raises the epoch. Only reads when there is nothing
  /// to take. One that is not enrolled cannot be taken: what was forgotten stays forgotten.
  virtual std::optional<ProjectionLease> acquire(std::string_view name, int version, std::string_view owner,
                                                 Duration lease,
                                                 ProjectionTake take = ProjectionTake::when_free) = 0;
  /// Extends the right to `lease` from now; gives it back when that is zero. False when the epoch is over.
  virtual bool renew(const ProjectionFence& fence, Duration lease) = 0;
  /// Moves the position inside the transaction that wrote the view, and clears failures. False, and nothing
  /// written, when the epoch is over or the position is not `from`: roll back then.
  virtual bool advance(Tx& tx, const ProjectionFence& fence, const ProjectionAdvance& step) = 0;
  /// False when the epoch is over.
  virtual bool fail(const ProjectionFence& fence, const ProjectionFailure& failure) = 0;

  /// By name and version; all names when it is empty. At most one version of a name is live.
  virtual std::vector<ProjectionStatus> list(std::string_view name) = 0;
  /// enroll makes the row unless it is there: at the beginning of the log, live when it is the first of its
  /// name. pause, and forget, end the epoch. switch_to is refused for one that is behind the live one, forget
  /// for the live one; one that somebody runs is too busy to be forgotten.
  virtual ProjectionChanged change(std::string_view name, int version, ProjectionChange what) = 0;
  /// ACTIVE at the beginning of the log, inside the caller's transaction; ends the epoch. Refused when it is
  /// over already: roll back then.
  virtual ProjectionChanged restart(Tx& tx, const ProjectionFence& fence) = 0;
  virtual std::vector<SkippedEntry> skipped(std::string_view name, int version, LogSeq after,
                                            std::size_t limit) = 0;
};

}  // namespace postrider
