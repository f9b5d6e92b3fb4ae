// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "postrider/event_store.hpp"
#include "postrider/retry_policy.hpp"

namespace postrider {

/// The events that a decision depends on: its consistency boundary.
class DecisionModel {
 public:
  explicit DecisionModel(Query query) : query_(std::move(query)) {}

  [[nodiscard]] const Query& query() const noexcept { return query_; }
  template <class... States>
  [[nodiscard]] Projected<States...> project(EventStore& store,
                                             const Projector<States>&... projectors) const {
    return store.project(query_, projectors...);
  }
  /// Nothing of it has changed behind `cursor`.
  [[nodiscard]] AppendCondition to_append_condition(Position cursor) const {
    return {.query = query_, .after = cursor};
  }

 private:
  Query query_;
};

/// What a handler has decided.
struct CommandResult {
  std::vector<AppendEvent> events{};
  std::optional<AppendCondition> condition{};
  /// The condition says "unless it has been done": a conflict is no reason to decide again.
  bool idempotent = false;
  std::string reason{};  ///< why there are no events

  /// Right whatever else happens.
  [[nodiscard]] static CommandResult commutative(std::vector<AppendEvent> events);
  /// Right as long as the condition holds; else it is decided again.
  [[nodiscard]] static CommandResult conditional(std::vector<AppendEvent> events, AppendCondition condition);
  /// Once, ever: unless an event with the tag is there. At least one of the events must have the tag; throws
  /// Error(invalid_argument) otherwise.
  [[nodiscard]] static CommandResult idempotent_by(std::vector<AppendEvent> events, Tag tag);
  /// Nothing to be done.
  [[nodiscard]] static CommandResult nothing(std::string reason);
};

/// What became of a command.
struct CommandOutcome {
  enum class Kind {
    appended,      ///< see `appended`
    already_done,  ///< an earlier one has done it; `conflict` names its event if it was found by appending
    nothing,       ///< the handler decided so, see `reason`
    conflict,      ///< others were quicker, every time; see `conflict`
  };
  Kind kind = Kind::nothing;
  int attempts = 0;  ///< how often the handler ran
  std::optional<Appended> appended{};
  std::optional<Conflict> conflict{};
  std::string reason{};

  [[nodiscard]] bool is_done() const noexcept { return kind == Kind::appended || kind == Kind::already_done; }
};
[[nodiscard]] std::string_view to_string(CommandOutcome::Kind kind) noexcept;

struct CommandExecutorOptions {
  int max_attempts = 10;  ///< 1 to 1000
  /// Between two attempts. Must outlive the executor; default: 2 ms, doubled up to 200 ms, with jitter.
  const RetryPolicy* retry = nullptr;
  Clock* clock = nullptr;  ///< default: Clock::system()
  /// Uniform in [0, 1); called from any thread. Default: random.
  std::function<double()> random{};
};

/// Runs handlers: reads, decides, appends; after a conflict the whole decision again, from the new state.
/// Thread-safe.
class CommandExecutor {
 public:
  /// Reads what it needs and decides. It may run several times, so it does nothing else. What it throws ends
  /// the command.
  using Handler = std::function<CommandResult(EventStore&)>;

  explicit CommandExecutor(EventStore& store, CommandExecutorOptions options = {});

  /// Throws what the store throws; a conflict is no exception.
  CommandOutcome execute(const Handler& handler);
  /// The same, at most once for this id (1 to 128 characters): the events get the tag `command_id=<id>`, and
  /// whoever repeats the command is told that it is done, before his handler runs.
  CommandOutcome execute(std::string_view command_id, const Handler& handler);

  static constexpr std::string_view command_tag = "command_id";

 private:
  void pause(int failed);
  [[nodiscard]] CommandOutcome run(const std::optional<Tag>& command, const Handler& handler);

  EventStore& store_;
  CommandExecutorOptions options_;
};

}  // namespace postrider
