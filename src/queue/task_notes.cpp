// SPDX-License-Identifier: Apache-2.0
#include "queue/task_notes.hpp"

#include <algorithm>

#include "core/failpoint.hpp"
#include "core/utf8.hpp"

namespace postrider {
namespace {

constexpr std::size_t max_task_chars = 128;
constexpr std::size_t shown_chars = 100;

thread_local const HandledByManager* handled_here = nullptr;

}  // namespace

std::string task_id(std::string_view owner, std::string_view name) {
  const auto chars = utf8_length(name);
  if (!chars || *chars < 1 || *chars > max_task_chars || name.find('\0') != std::string_view::npos) {
    throw Error(ErrorCode::invalid_argument,
                "cannot run the task '" + utf8_repaired(utf8_prefix(name, shown_chars)) + "' once",
                "its name must have 1 to 128 characters of UTF-8");
  }
  return std::string(owner) + "#" + std::string(name);
}

std::optional<HandlerResult> stored_success(QueueStore& store, QueueId event, std::string_view handler) {
  failpoint("queue.result.load");
  for (QueueStore::EventState& state : store.load_states({&event, 1})) {
    if (state.result.handler == handler && state.result.verdict == HandlerVerdict::success) {
      return std::move(state.result);
    }
  }
  return std::nullopt;
}

bool success_in(Tx& tx, QueueStore& store, QueueId event, std::string_view handler) {
  const std::vector<std::string> done = store.done_in(tx, event);
  return std::find(done.begin(), done.end(), handler) != done.end();
}

void note_task(Tx* tx, QueueStore& store, const Claim& claim, std::string_view id) {
  const HandlerResult done{.handler = std::string(id)};
  const bool held =
      tx == nullptr ? store.save_states(claim, {&done, 1}) : store.save_states(*tx, claim, {&done, 1});
  if (!held) throw LostClaim();
}

HandledByManager::HandledByManager(const QueueStore& store, const Claim& claim) noexcept
    : store_(store), claim_(claim), before_(handled_here) {
  handled_here = this;
}

HandledByManager::~HandledByManager() {
  handled_here = before_;
}

void HandledByManager::refuse(const QueueStore& store, const Claim& claim) {
  for (const HandledByManager* one = handled_here; one != nullptr; one = one->before_) {
    if (&one->store_ != &store || one->claim_ != claim) continue;
    throw Error(ErrorCode::invalid_argument,
                "cannot settle event " + std::to_string(static_cast<std::int64_t>(claim.id)),
                "its handlers are running, and the manager writes what they say",
                "return or throw from the handler, or use complete(tx) of its context");
  }
}

}  // namespace postrider
