// SPDX-License-Identifier: Apache-2.0
#include "postrider/decision.hpp"

#include <algorithm>
#include <random>

#include "core/option_check.hpp"
#include "core/text_bounds.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

const ExponentialBackoffRetryPolicy& default_retry() {
  static const ExponentialBackoffRetryPolicy policy(std::chrono::milliseconds{2},
                                                    std::chrono::milliseconds{200});
  return policy;
}

double random_unit() {
  thread_local std::minstd_rand engine{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.0, 1.0)(engine);
}

CommandExecutorOptions checked(CommandExecutorOptions options) {
  OptionCheck("CommandExecutorOptions").number("max_attempts", options.max_attempts, 1, 1000);
  if (options.retry == nullptr) options.retry = &default_retry();
  if (options.clock == nullptr) options.clock = &Clock::system();
  if (!options.random) options.random = random_unit;
  return options;
}

}  // namespace

CommandResult CommandResult::commutative(std::vector<AppendEvent> events) {
  return {.events = std::move(events)};
}

CommandResult CommandResult::conditional(std::vector<AppendEvent> events, AppendCondition condition) {
  return {.events = std::move(events), .condition = std::move(condition)};
}

CommandResult CommandResult::idempotent_by(std::vector<AppendEvent> events, Tag tag) {
  const bool tagged = std::any_of(events.begin(), events.end(), [&](const AppendEvent& event) {
    return std::find(event.tags().begin(), event.tags().end(), tag) != event.tags().end();
  });
  if (!tagged) {
    throw Error(ErrorCode::invalid_argument, "cannot be idempotent by the tag '" + tag.encode() + "'",
                "none of the events has it, so a repeat would not be known", "add it to one of them");
  }
  return {.events = std::move(events),
          .condition = AppendCondition{.query = Query::tags({std::move(tag)})},
          .idempotent = true};
}

CommandResult CommandResult::nothing(std::string reason) {
  return {.reason = std::move(reason)};
}

std::string_view to_string(CommandOutcome::Kind kind) noexcept {
  switch (kind) {
    case CommandOutcome::Kind::appended:
      return "appended";
    case CommandOutcome::Kind::already_done:
      return "already_done";
    case CommandOutcome::Kind::nothing:
      return "nothing";
    case CommandOutcome::Kind::conflict:
      return "conflict";
  }
  return "unknown";
}

CommandExecutor::CommandExecutor(EventStore& store, CommandExecutorOptions options)
    : store_(store), options_(checked(std::move(options))) {}

CommandOutcome CommandExecutor::execute(const Handler& handler) {
  return run(std::nullopt, handler);
}

CommandOutcome CommandExecutor::execute(std::string_view command_id, const Handler& handler) {
  check_text_bounds("cannot execute a command", "id", command_id, 1, 128);
  return run(Tag{.key = std::string(command_tag), .value = std::string(command_id)}, handler);
}

CommandOutcome CommandExecutor::run(const std::optional<Tag>& command, const Handler& handler) {
  using Kind = CommandOutcome::Kind;
  const std::optional<Query> done = command ? std::optional(Query::tags({*command})) : std::nullopt;
  CommandOutcome outcome;
  for (;;) {
    Position looked{0};
    if (done) {
      EventStream earlier = store_.read(*done, {.limit = 1});
      looked = earlier.head();
      if (earlier.next().has_value()) {
        outcome.kind = Kind::already_done;
        return outcome;
      }
    }
    ++outcome.attempts;
    CommandResult result = handler(store_);
    if (result.events.empty()) {
      outcome.kind = Kind::nothing;
      outcome.reason = std::move(result.reason);
      return outcome;
    }
    if (command) {
      for (AppendEvent& event : result.events) event = event.with(*command);
      if (!result.condition) {
        result.condition = AppendCondition{.query = *done, .after = looked};
      } else {
        // Whoever decided looked at a later state than we did: what came between, the condition does not see.
        if (result.condition->after > looked && store_.exists(*done, looked)) continue;
        result.condition->query = result.condition->query | *done;
      }
    }
    AppendResult appended = result.condition ? store_.append_if(result.events, *result.condition)
                                             : AppendResult(store_.append(result.events));
    if (const auto* there = std::get_if<Appended>(&appended)) {
      outcome.kind = Kind::appended;
      outcome.appended = *there;
      outcome.conflict.reset();
      return outcome;
    }
    outcome.conflict = std::get<Conflict>(std::move(appended));
    if (result.idempotent) {
      outcome.kind = Kind::already_done;
      return outcome;
    }
    if (outcome.attempts >= options_.max_attempts) {
      outcome.kind = done && store_.exists(*done) ? Kind::already_done : Kind::conflict;
      return outcome;
    }
    pause(outcome.attempts);
  }
}

void CommandExecutor::pause(int failed) {
  Mutex mutex;
  CondVar nobody;
  const SteadyPoint until =
      options_.clock->steady_now() + options_.retry->delay(Attempt{failed}, options_.random());
  const MutexLock lock(mutex);
  while (options_.clock->steady_now() < until) options_.clock->wait_until(nobody, mutex, until);
}

}  // namespace postrider
