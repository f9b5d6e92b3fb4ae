// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/routes.hpp"

#include <algorithm>
#include <optional>

#include "core/utf8.hpp"
#include "core/what_of.hpp"
#include "storage/outbox_store.hpp"

namespace postrider::daemon {
namespace {

constexpr Duration while_another_asks = std::chrono::seconds{1};
constexpr Duration until_tried_again = std::chrono::seconds{1};

bool contains(const SinkNumbers& numbers, std::uint32_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

/// What the outcomes of several sinks are together.
class Joined {
 public:
  /// Of each sink's reason as much is kept as leaves room for the others': they are recalled by it.
  explicit Joined(std::size_t sinks)
      : longest_reason_(std::max(max_error_chars / sinks, room_for_name + shortest) - room_for_name) {}

  void add(const std::string& sink, const Outcome& outcome) {
    if (outcome.kind() == Outcome::Kind::done) return;
    if (!reason_.empty()) reason_ += "; ";
    const bool away = outcome.kind() == Outcome::Kind::retry_after;
    reason_ += (away ? error_of_away(sink) : "sink " + sink + " refuses it: ");
    reason_ += utf8_prefix(outcome.reason(), longest_reason_);
    switch (outcome.kind()) {
      case Outcome::Kind::retry_after:
        soonest_ = std::min(soonest_.value_or(outcome.delay()), outcome.delay());
        break;
      case Outcome::Kind::failed:
        failed_ = true;
        break;
      case Outcome::Kind::dead:
      case Outcome::Kind::done:
        break;
    }
  }
  /// An event does not die of one sink's refusals while another one is only away.
  [[nodiscard]] Outcome outcome() const {
    if (reason_.empty()) return Outcome::done();
    if (soonest_) return Outcome::retry_after(*soonest_, reason_);
    return failed_ ? Outcome::failed(reason_) : Outcome::dead(reason_);
  }

 private:
  static constexpr std::size_t room_for_name = 100;
  static constexpr std::size_t shortest = 20;

  const std::size_t longest_reason_;
  std::string reason_;  // names those that lack it
  std::optional<Duration> soonest_;
  bool failed_ = false;
};

/// A sink that throws keeps the event from none of the others.
PublishResult result_of(Sink& sink, const Event& event) {
  try {
    return send_event(sink, event);
  } catch (const std::exception& error) {
    return PublishResult::refused(0, what_of(error));
  }
}

}  // namespace

Routes::Routes(const std::vector<Route>& routes, Options options)
    : options_(options),
      parked_(options.clock == nullptr ? Clock::system() : *options.clock),
      memory_(options.remembered_events) {
  for (const Route& route : routes) {
    const auto same = std::find_if(receivers_.begin(), receivers_.end(),
                                   [&](const Receiver& one) { return one.name == route.config.sink; });
    routes_.push_back({route.config, static_cast<std::uint32_t>(same - receivers_.begin())});
    if (same != receivers_.end()) continue;
    receivers_.push_back({route.config.sink, route.sink});
    parked_.add(route.config.sink);
  }
}

SinkNumbers Routes::receivers_of(const Event& event) const {
  SinkNumbers numbers;
  for (const Entry& route : routes_) {
    if (route.config.matches(event) && !contains(numbers, route.receiver)) numbers.push_back(route.receiver);
  }
  return numbers;
}

Outcome Routes::operator()(const Event& event, const Delivery& delivery) {
  const SinkNumbers receivers = receivers_of(event);
  if (receivers.size() == 1) {
    Joined only(1);
    only.add(receivers_[receivers.front()].name, send(receivers.front(), event));
    return only.outcome();
  }
  if (!receivers.empty()) return deliver(event, delivery, receivers);
  if (!options_.unrouted_is_dead) return Outcome::done();
  return Outcome::dead("no route takes an event of type '" + event.type() + "', aggregate '" +
                       event.aggregate_type() + "', tenant '" + event.tenant_id() + "'");
}

Outcome Routes::send(std::uint32_t number, const Event& event) {
  const ParkedSinks::Asking asking(parked_, number);
  Sink& sink = *receivers_[number].sink;
  if (!asking.allowed()) {
    const std::string trouble = sink.trouble();
    return Outcome::retry_after(parked_.park(number, while_another_asks),
                                trouble.empty() ? "it was away, and another event is being tried" : trouble);
  }
  const PublishResult result = result_of(sink, event);
  const Duration delay = std::max(until_tried_again, result.retry_after());
  switch (result.kind()) {
    case PublishResult::Kind::all:
      parked_.answered(number);
      return Outcome::done();
    case PublishResult::Kind::refused:
      // It is there, so others need not wait for it.
      parked_.answered(number);
      return Outcome::failed(result.reason());
    case PublishResult::Kind::unavailable:
      break;
  }
  // It failed with this event, and has taken others of late: it is not away.
  if (result.is_unclear()) return Outcome::retry_after(delay, result.reason());
  return Outcome::retry_after(parked_.park(number, delay), result.reason());
}

Outcome Routes::deliver(const Event& event, const Delivery& delivery, const SinkNumbers& receivers) {
  SinkNumbers taken;
  if (delivery.source == Source::cold) {
    taken = memory_.taken(event, delivery.life);
  } else {
    memory_.forget(event.id());  // just committed: what was known by this id was another row
  }
  const std::size_t taken_before = taken.size();
  Joined joined(receivers.size());
  for (const std::uint32_t number : receivers) {
    if (contains(taken, number)) continue;
    const Outcome outcome = send(number, event);
    if (outcome.kind() == Outcome::Kind::done) taken.push_back(number);
    joined.add(receivers_[number].name, outcome);
  }
  Outcome outcome = joined.outcome();
  const bool last = static_cast<std::int64_t>(delivery.failed) + 1 >= options_.max_attempts;
  const bool comes_again =
      outcome.kind() == Outcome::Kind::retry_after || (outcome.kind() == Outcome::Kind::failed && !last);
  if (!comes_again) {
    if (taken_before != 0) memory_.forget(event.id());
  } else if (taken.size() > taken_before) {
    memory_.remember(event, delivery.life, taken);
  }
  return outcome;
}

}  // namespace postrider::daemon
