// SPDX-License-Identifier: Apache-2.0
#include "queue/event_run.hpp"

#include <limits>
#include <set>
#include <utility>

#include "core/failpoint.hpp"
#include "core/utf8.hpp"
#include "core/what_of.hpp"
#include "postrider/error.hpp"
#include "storage/require_active.hpp"

namespace postrider {
namespace {

constexpr std::size_t max_task_chars = 128;

/// The claim has gone to somebody else while the handler ran.
class LostClaim final : public Error {
 public:
  LostClaim()
      : Error(ErrorCode::conflict, "cannot go on with this event",
              "its claim has gone to another worker meanwhile", "let this exception through") {}
};

}  // namespace

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

 protected:
  bool is_done(std::string_view name) override {
    const std::string id = task_id(name);
    if (run_.states_.contains(id)) return true;
    // Noted in a transaction of this very call, which may have been committed since.
    return noted_in_tx_.contains(id) && run_.stored_success(id).has_value();
  }
  void note_done(Tx* tx, std::string_view name) override {
    const HandlerResult done{.handler = task_id(name)};
    if (tx != nullptr) {
      require_active(*tx, "cannot run a task once");
      noted_in_tx_.insert(done.handler);
    }
    const bool held = tx == nullptr ? run_.store_.save_states(run_.event_.claim, {&done, 1})
                                    : run_.store_.save_states(*tx, run_.event_.claim, {&done, 1});
    if (!held) throw LostClaim();
    // What is in a user's transaction may still be rolled back: it is read again the next time.
    if (tx == nullptr) run_.states_.insert_or_assign(done.handler, done);
  }

 private:
  [[nodiscard]] std::string task_id(std::string_view name) const {
    const auto chars = utf8_length(name);
    if (!chars || *chars < 1 || *chars > max_task_chars || name.find('\0') != std::string_view::npos) {
      throw Error(ErrorCode::invalid_argument, "cannot run the task '" + utf8_repaired(name) + "' once",
                  "its name must have 1 to 128 characters of UTF-8");
    }
    return handler_.id + "#" + std::string(name);
  }

  EventRun& run_;
  const Handler& handler_;
  const Attempt failed_;
  bool completed_in_tx_ = false;
  std::set<std::string, std::less<>> noted_in_tx_;
};

bool HandlerContext::once(std::string_view name, const std::function<void()>& task) {
  if (is_done(name)) return false;
  task();
  note_done(nullptr, name);
  return true;
}

bool HandlerContext::once(Tx& tx, std::string_view name, const std::function<void(Tx&)>& task) {
  if (is_done(name)) return false;
  // Noted first: this locks the event's row, so that nobody else can do the same beside us.
  note_done(&tx, name);
  task(tx);
  return true;
}

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
    if (std::optional<HandlerResult> stored = stored_success(handler.id)) {
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

std::optional<HandlerResult> EventRun::stored_success(const std::string& handler) {
  failpoint("queue.result.load");
  const QueueId id = event_.claim.id;
  for (QueueStore::EventState& state : store_.load_states({&id, 1})) {
    if (state.result.handler == handler && state.result.verdict == HandlerVerdict::success) {
      return std::move(state.result);
    }
  }
  return std::nullopt;
}

EventHandledResult EventRun::call(const Handler& handler, Context& context) const {
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
