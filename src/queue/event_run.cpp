// SPDX-License-Identifier: Apache-2.0
#include "queue/event_run.hpp"

#include <limits>
#include <set>
#include <utility>

#include "core/failpoint.hpp"
#include "core/what_of.hpp"
#include "postrider/error.hpp"
#include "queue/task_notes.hpp"
#include "storage/require_active.hpp"

namespace postrider {

/// Lives for one call of one handler.
class EventRun::Context final : public HandlerContext {
 public:
  Context(EventRun& run, const Handler& handler, Attempt failed)
      : run_(run), handler_(handler), failed_(failed) {}

  [[nodiscard]] const Event& event() const noexcept override { return *run_.event_.event; }
  [[nodiscard]] const Claim& claim() const noexcept override { return run_.event_.claim; }
  [[nodiscard]] std::int32_t attempts() const noexcept override { return run_.event_.attempts; }
  [[nodiscard]] std::int32_t crashes() const noexcept override { return run_.event_.crashes; }
  [[nodiscard]] Attempt failed() const noexcept override { return failed_; }

  void complete(Tx& tx) override {
    require_active(tx, "cannot complete an event");
    const HandlerResult done{.handler = handler_.id, .failed = failed_};
    if (!run_.store_.save_states(tx, run_.event_.claim, {&done, 1})) throw LostClaim();
    completed_in_tx_ = true;
  }
  /// Whether `complete` was called: the transaction may have been committed whatever the handler said.
  [[nodiscard]] bool completed_in_tx() const noexcept { return completed_in_tx_; }

  bool once(std::string_view name, const std::function<void()>& task) override {
    const std::string id = task_id(handler_.id, name);
    if (is_done(id)) return false;
    run_task(id, task);
    note_task(nullptr, run_.store_, run_.event_.claim, id);
    run_.states_.insert_or_assign(id, HandlerResult{.handler = id});
    return true;
  }
  bool once(Tx& tx, std::string_view name, const std::function<void(Tx&)>& task) override {
    require_active(tx, "cannot run a task once");
    const std::string id = task_id(handler_.id, name);
    if (is_done(id)) return false;
    if (noted_in_tx_.contains(id) && success_in(tx, run_.store_, run_.event_.claim.id, id)) return false;
    run_task(id, [&] { task(tx); });
    require_active(tx, "cannot note that a task is done");
    note_task(&tx, run_.store_, run_.event_.claim, id);
    // It may still be rolled back, so that the database is asked the next time.
    noted_in_tx_.insert(id);
    return true;
  }

 private:
  /// As far as committed.
  [[nodiscard]] bool is_done(const std::string& id) {
    if (run_.states_.contains(id)) return true;
    return noted_in_tx_.contains(id) && stored_success(run_.store_, run_.event_.claim.id, id).has_value();
  }
  void run_task(const std::string& id, const std::function<void()>& task) {
    if (!running_tasks_.insert(id).second) {
      throw Error(ErrorCode::invalid_argument, "cannot run the task '" + id + "' once",
                  "it is running: it was called from inside itself", "give the inner one another name");
    }
    try {
      task();
    } catch (...) {
      running_tasks_.erase(id);
      throw;
    }
    running_tasks_.erase(id);
  }

  EventRun& run_;
  const Handler& handler_;
  const Attempt failed_;
  bool completed_in_tx_ = false;
  std::set<std::string, std::less<>> noted_in_tx_;
  std::set<std::string, std::less<>> running_tasks_;
};

EventHandledResult detail::cannot_decode(std::string_view type, const std::exception& why) {
  return EventHandledResult::unrecoverable_error("cannot read the payload as " + std::string(type) + ": " +
                                                 what_of(why));
}

std::optional<Settlement> EventRun::run(const HandlerRegistry::List& handlers, int max_attempts,
                                        double random) {
  const bool has_come_back = came_back(event_);
  std::vector<HandlerStanding> standings;
  standings.reserve(handlers.size());
  for (std::size_t i = 0; i < handlers.size(); ++i) {
    const Handler& handler = *handlers[i];
    HandlerStanding& standing = standings.emplace_back();
    standing.max_attempts = handler.max_attempts;
    standing.policy = handler.retry_policy.get();
    const auto stored = states_.find(handler.id);
    if (stored != states_.end()) standing.result = stored->second;
    standing.result.handler = handler.id;
    if (stored != states_.end() && is_final(standing.result, handler.max_attempts)) continue;
    if (!run_one(handler, has_come_back && i + 1 < handlers.size(), standing)) return std::nullopt;
  }
  return decide_event(event_, standings, max_attempts, random);
}

bool EventRun::run_one(const Handler& handler, bool store_at_once, HandlerStanding& standing) {
  HandlerResult& result = standing.result;
  Context context(*this, handler, result.failed);
  failpoint("queue.handler.before");
  try {
    const EventHandledResult said = call(handler, context);
    result.verdict = said.verdict();
    result.error = said.reason();
    standing.asked_delay = said.delay();
  } catch (const LostClaim&) {
    return false;
  }
  failpoint("queue.handler.after");
  if (context.completed_in_tx()) {
    // Whatever the handler says, only the database knows whether that transaction was committed.
    if (std::optional<HandlerResult> stored = stored_success(store_, event_.claim.id, handler.id)) {
      result = *std::move(stored);
      standing.asked_delay.reset();
    } else if (result.verdict == HandlerVerdict::success) {
      result.verdict = HandlerVerdict::transient_error;
      result.error = "complete(tx) was called, but the transaction was not committed";
    }
  }
  if (result.verdict != HandlerVerdict::success) metrics_.increment_handler_failures();
  if (result.verdict == HandlerVerdict::transient_error &&
      result.failed < Attempt{std::numeric_limits<std::int32_t>::max()}) {
    result.failed = Attempt{static_cast<std::int32_t>(result.failed) + 1};
  }
  return !store_at_once || store(result);
}

bool EventRun::store(const HandlerResult& result) {
  try {
    failpoint("queue.result.store");
    return store_.save_states(event_.claim, {&result, 1});
  } catch (const Error&) {
    return true;  // the database is away: the settlement brings the result
  }
}

EventHandledResult EventRun::call(const Handler& handler, Context& context) const {
  const HandledByManager handled(store_, event_.claim);
  try {
    return handler.function(*event_.event, context);
  } catch (const LostClaim&) {
    throw;
  } catch (const std::exception& error) {
    return EventHandledResult::transient_error(what_of(error));
  } catch (...) {
    return EventHandledResult::transient_error("an exception that is no std::exception");
  }
}

}  // namespace postrider
