// SPDX-License-Identifier: Apache-2.0
#include "logger/sender.hpp"

#include <algorithm>
#include <utility>

#include "core/failpoint.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"

namespace postrider::logger {
namespace {

constexpr Duration longest_retry_after = std::chrono::minutes{5};
/// How soon the receiver is asked again while the disk has no room.
constexpr Duration crowded_pause = std::chrono::seconds{1};

bool is_known(SendVerdict verdict) noexcept {
  switch (verdict) {
    case SendVerdict::delivered:
    case SendVerdict::rejected:
    case SendVerdict::too_large:
    case SendVerdict::transient:
    case SendVerdict::throttled:
      return true;
  }
  return false;
}

/// A client of somebody's own may say anything; what nobody knows is no delivery.
template <class Answer>
void make_known(Answer& answer) {
  if (is_known(answer.verdict)) return;
  answer.reason = "a verdict that nobody knows: " + std::to_string(static_cast<int>(answer.verdict));
  answer.verdict = SendVerdict::transient;
}

}  // namespace

Duration full_jitter(Duration base, Duration max, int failed, double random) noexcept {
  const int doublings = std::clamp(failed, 1, 63) - 1;
  const bool below = base.count() <= (max.count() >> doublings);
  const Duration full = below ? base * (std::int64_t{1} << doublings) : max;
  return Duration{static_cast<std::int64_t>(static_cast<double>(full.count()) * random)};
}

SendResult Outlet::try_send(std::span<const OutgoingEvent> events) {
  SendResult result;
  try {
    result = client.send(events);
    if (!result.items.empty() && result.items.size() != events.size()) {
      result = {.verdict = SendVerdict::transient,
                .status = result.status,
                .reason = "the answer is about " + std::to_string(result.items.size()) + " events of " +
                          std::to_string(events.size())};
    }
  } catch (const std::exception& error) {
    result = {.verdict = SendVerdict::transient, .reason = what_of(error)};
  } catch (...) {
    result = {.verdict = SendVerdict::transient, .reason = "the client threw something unknown"};
  }
  make_known(result);
  for (SendItem& item : result.items) make_known(item);
  failpoint("logger.sent");
  return result;
}

SendResult Outlet::send(std::span<const OutgoingEvent> events) {
  SendResult result = try_send(events);
  gate.leave(result);
  news.heard(result);
  return result;
}

SendResult Outlet::send_suspect(const OutgoingEvent& event) {
  SendResult result = try_send({&event, 1});
  if (verdict_of_one(result) == SendVerdict::transient) {
    gate.leave();
  } else {
    gate.leave(result);
    news.heard(result);
  }
  return result;
}

SendVerdict verdict_of_one(const SendResult& result) noexcept {
  return result.items.empty() ? result.verdict : result.items.front().verdict;
}

std::string Outlet::meanwhile(const LoggerOptions& options) {
  if (!options.spillover_path.empty()) {
    constexpr std::uint64_t mebibyte = 1024 * 1024;
    const bool small = options.max_spillover_bytes < mebibyte;
    return "events go to " + options.spillover_path + ", up to " +
           counted(options.max_spillover_events, "event") + " and " +
           (small ? counted(options.max_spillover_bytes, "byte")
                  : std::to_string(options.max_spillover_bytes / mebibyte) + " MiB");
  }
  return "there is no spillover_path: an event is lost after " +
         counted(static_cast<std::size_t>(options.max_retries) + 1, "attempt") +
         " at most, or when it comes while " + counted(options.queue_capacity, "event") +
         " wait in memory and its ring is full";
}

bool Outlet::divert(std::span<const EventRef> events, LossReason reason) {
  if (events.empty()) return true;
  if (writer == nullptr) {
    for (const EventRef& event : events) ledger.lost(event, reason);
    return true;
  }
  if (stopping) {
    writer->take_all(events);
    return true;
  }
  events = events.subspan(writer->take(events));
  if (events.empty()) return true;
  std::vector<EventRef> again(events.begin(), events.end());
  for (EventRef& event : again) event.attempts = 0;
  queue.give_back(again);
  return false;
}

bool Outlet::bury(std::string_view members, const SendItem& why) {
  refusals.heard(why);
  if (store == nullptr) return false;
  std::string line = R"({"status":)" + std::to_string(why.status) + R"(,"reason":)";
  append_json_string(line, why.reason);
  line.append(R"(,"buriedAt":")");
  append_time(line, options.clock->now());
  line.append(R"(","event":{)").append(members).append("}}");
  return store->dead_letters().append(line, options.fsync != FsyncMode::none);
}

void Sender::run() {
  std::vector<EventRef> batch;
  std::vector<EventRef> homeless;
  while (outlet_.queue.take(batch, homeless)) {
    divert(homeless, LossReason::retry_requeue_failed);
    homeless.clear();
    if (!batch.empty()) send(batch);
    batch.clear();
    if (std::exchange(crowded_, false)) {
      outlet_.writer->await_space(outlet_.options.clock->steady_now() + crowded_pause);
    }
  }
}

void Sender::send(std::vector<EventRef>& batch) {
  // Ask first: making JSON for a closed door would be for nothing.
  if (!outlet_.gate.enter()) {
    if (outlet_.writer != nullptr || outlet_.stopping) {
      divert(batch, LossReason::shutdown_in_progress);
    } else {
      outlet_.queue.give_back(batch);
      failpoint("logger.held");
      outlet_.gate.await_reset();
    }
    return;
  }
  text_.clear();
  events_.clear();
  outgoing_.clear();
  std::vector<std::pair<std::size_t, std::size_t>> ends;  // of members; the key is at their end
  for (const EventRef& event : batch) {
    const std::size_t begin = text_.size();
    if (!outlet_.ledger.append_event(text_, event)) {
      text_.resize(begin);
      outlet_.ledger.lost(event, LossReason::serialization);
      continue;
    }
    events_.push_back(event);
    ends.emplace_back(begin, text_.size());
  }
  for (const auto& [begin, end] : ends) {
    const std::string_view members = std::string_view(text_).substr(begin, end - begin);
    const std::size_t quote = members.rfind('"', members.size() - 2);
    outgoing_.push_back({members, members.substr(quote + 1, members.size() - quote - 2)});
  }
  if (events_.empty()) {
    outlet_.gate.leave({.verdict = SendVerdict::throttled});
    return;
  }
  std::vector<Part> parts{{0, events_.size()}};
  bool entered = true;
  while (!parts.empty()) {
    const Part part = parts.back();
    parts.pop_back();
    const std::size_t size = part.end - part.begin;
    if (!entered && !outlet_.gate.enter()) {
      divert(std::span(events_).subspan(part.begin, size), LossReason::retries_exhausted);
      continue;
    }
    entered = false;
    const SendResult result = outlet_.send(std::span(outgoing_).subspan(part.begin, size));
    settle(part, result, parts);
  }
}

void Sender::settle(const Part& part, const SendResult& result, std::vector<Part>& again) {
  const std::size_t size = part.end - part.begin;
  if (result.items.empty() && result.verdict == SendVerdict::delivered) {
    outlet_.ledger.delivered(std::span(events_).subspan(part.begin, size));
    return;
  }
  const bool splits = result.verdict == SendVerdict::rejected || result.verdict == SendVerdict::too_large;
  if (result.items.empty() && splits && size > 1) {
    // One bad event must not take its neighbours along: look for it in the halves, the first one first.
    const std::size_t middle = part.begin + size / 2;
    again.push_back({middle, part.end});
    again.push_back({part.begin, middle});
    return;
  }
  jitter_ = std::uniform_real_distribution<double>(0, 1)(random_);
  may_retry_.reset();
  for (std::size_t i = 0; i < size; ++i) {
    const SendItem whole{result.verdict, result.status, result.reason};
    settle_one(part.begin + i, result.items.empty() ? whole : result.items[i], result);
  }
}

void Sender::settle_one(std::size_t index, const SendItem& item, const SendResult& result) {
  const EventRef& event = events_[index];
  switch (item.verdict) {
    case SendVerdict::delivered:
      outlet_.ledger.delivered({&event, 1});
      return;
    case SendVerdict::rejected:
    case SendVerdict::too_large:
      if (outlet_.bury(outgoing_[index].members, item)) {
        outlet_.ledger.dead(event);
      } else {
        outlet_.ledger.lost(event, LossReason::rejected);
      }
      return;
    case SendVerdict::transient:
    case SendVerdict::throttled:
      retry(event, result);
  }
}

void Sender::retry(EventRef event, const SendResult& result) {
  const LoggerOptions& options = outlet_.options;
  if (outlet_.stopping) return divert({&event, 1}, LossReason::retry_executor_rejected);
  const bool exhausted = event.attempts >= options.max_retries;
  if (!exhausted && !may_retry_) may_retry_ = outlet_.gate.spend_retry();
  if (exhausted || !*may_retry_) return divert({&event, 1}, LossReason::retries_exhausted);
  ++event.attempts;
  Duration delay = full_jitter(options.base_retry_delay, options.max_retry_delay, event.attempts, jitter_);
  // A receiver that means next year is asked again before.
  if (result.retry_after) delay = std::max(delay, std::min(*result.retry_after, longest_retry_after));
  if (outlet_.queue.push_retry(event, options.clock->steady_now() + delay)) {
    outlet_.ledger.retried(1);
  } else {
    divert({&event, 1}, LossReason::retry_executor_rejected);
  }
}

}  // namespace postrider::logger
