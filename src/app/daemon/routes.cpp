// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/routes.hpp"

#include <algorithm>
#include <optional>

#include "core/what_of.hpp"

namespace postrider::daemon {
namespace {

bool contains(const SinkNumbers& numbers, std::uint32_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

/// What the outcomes of several sinks are together.
class Joined {
 public:
  void add(const std::string& sink, const Outcome& outcome) {
    if (outcome.kind() == Outcome::Kind::done) return;
    if (!reason_.empty()) reason_ += "; ";
    reason_ += "sink " + sink + ": " + outcome.reason();
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
  std::string reason_;  // names those that lack it
  std::optional<Duration> soonest_;
  bool failed_ = false;
};

/// A sink that throws keeps the event from none of the others.
Outcome outcome_of(const Listener& listener, const Event& event, const Delivery& delivery) {
  try {
    return listener(event, delivery);
  } catch (const std::exception& error) {
    return Outcome::failed(what_of(error));
  }
}

}  // namespace

Routes::Routes(const std::vector<Route>& routes, Options options)
    : options_(options), memory_(options.remembered_events) {
  for (const Route& route : routes) {
    const auto same = std::find_if(receivers_.begin(), receivers_.end(),
                                   [&](const Receiver& one) { return one.name == route.config.sink; });
    routes_.push_back({route.config, static_cast<std::uint32_t>(same - receivers_.begin())});
    if (same == receivers_.end()) receivers_.push_back({route.config.sink, sink_listener(route.sink)});
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
  if (receivers.size() == 1) return receivers_[receivers.front()].listener(event, delivery);
  if (!receivers.empty()) return deliver(event, delivery, receivers);
  if (!options_.unrouted_is_dead) return Outcome::done();
  return Outcome::dead("no route takes an event of type '" + event.type() + "', aggregate '" +
                       event.aggregate_type() + "', tenant '" + event.tenant_id() + "'");
}

Outcome Routes::deliver(const Event& event, const Delivery& delivery, const SinkNumbers& receivers) {
  SinkNumbers taken;
  if (delivery.source == Source::cold) {
    taken = memory_.taken(event, delivery.life);
  } else {
    memory_.forget(event.id());  // just committed: what was known by this id was another row
  }
  const std::size_t taken_before = taken.size();
  Joined joined;
  for (const std::uint32_t number : receivers) {
    if (contains(taken, number)) continue;
    const Receiver& receiver = receivers_[number];
    const Outcome outcome = outcome_of(receiver.listener, event, delivery);
    if (outcome.kind() == Outcome::Kind::done) taken.push_back(number);
    joined.add(receiver.name, outcome);
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
