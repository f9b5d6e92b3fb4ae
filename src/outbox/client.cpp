// SPDX-License-Identifier: Apache-2.0
#include "outbox/client.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/event_size.hpp"
#include "core/failpoint.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "storage/require_active.hpp"

namespace postrider {

namespace {

constexpr Duration between_warnings = std::chrono::seconds{1};
}  // namespace

/// What has to happen once a transaction is known to be committed. Owns nothing of the outbox but the
/// dispatcher, which refuses when the outbox is gone, so it may outlive it; the storage must be there.
struct Staged::Pending {
  OutboxStore* store = nullptr;
  std::shared_ptr<OutboxDispatcher> dispatcher;
  OutboxDispatcher::HotPlaces places;
  std::vector<OutboxItem> hot;
  bool left_to_poller = false;
  std::vector<SteadyPoint> delayed{};
  Duration lease{};
  Clock* clock = nullptr;
  LogCallback log;

  void hand_over() {
    failpoint("outbox.publish.after_commit");
    if (!hot.empty() && !dispatcher->enqueue_hot(hot, std::move(places))) {
      // Stopped between insert and commit. The rows are leased to a node that will not deliver them: free
      // them.
      std::vector<Completion> releases;
      for (const OutboxItem& event : hot) {
        releases.push_back({LeaseRef{event.id(), event.token}, Completion::Kind::release, {}, {}, {}});
      }
      store->complete(releases);
    }
    if (left_to_poller) dispatcher->request_poll();
    for (const SteadyPoint due : delayed) dispatcher->request_poll(due);
  }

  /// Nobody knows whether the rows are there. If they are, they are leased to this node, which does not have
  /// them: they shall not wait, and hold up their keys, until that lease is over.
  void in_doubt() {
    places = {};
    if (!hot.empty()) dispatcher->doubt(hot);
  }

  /// The caller says that the rows are committed; look before believing it. Rows that are there are ours from
  /// now on for a whole lease; rows that are not there were rolled back, and nobody hears of them.
  void verify() {
    std::vector<LeaseRef> claimed;
    for (const OutboxItem& event : hot) claimed.push_back({event.id(), event.token});
    if (claimed.empty()) return;
    const SteadyPoint asked = clock->steady_now();
    const std::vector<EventId> kept = store->renew(claimed, lease);
    const std::unordered_set<EventId> there(kept.begin(), kept.end());
    std::erase_if(hot, [&](const OutboxItem& event) { return !there.contains(event.id()); });
    for (OutboxItem& event : hot) event.lease_end = asked + lease;
  }

  /// Costs latency when it fails: the poller brings the events.
  void verify_and_hand_over() noexcept {
    try {
      verify();
      hand_over();
    } catch (const std::exception& error) {
      log(LogLevel::warning,
          "postrider: cannot confirm a committed event, the poller will bring it: " + what_of(error));
    }
  }

  /// After the commit of a transaction of ours, of which a part may have been undone on the way.
  void committed(const detail::PartialRollbacks& rollbacks, std::size_t count_at_publication) {
    if (rollbacks.count == count_at_publication) return hand_over();
    // Published once more since, maybe with another payload: then the row is that one's.
    std::erase_if(hot,
                  [&](const OutboxItem& event) { return rollbacks.published_since.contains(event.id()); });
    verify_and_hand_over();
  }
};

Staged::Staged(std::vector<EventId> ids, std::unique_ptr<Pending> pending) noexcept
    : ids_(std::move(ids)), pending_(std::move(pending)) {}
Staged::Staged(Staged&&) noexcept = default;
Staged& Staged::operator=(Staged&&) noexcept = default;
Staged::~Staged() = default;

void Staged::committed() noexcept {
  const std::unique_ptr<Pending> pending = std::move(pending_);
  if (pending) pending->verify_and_hand_over();
}

OutboxClient::OutboxClient(OutboxStore& store, std::shared_ptr<OutboxDispatcher> dispatcher,
                           ClientOptions options)
    : store_(store), dispatcher_(std::move(dispatcher)), options_(std::move(options)) {}

Staged OutboxClient::publish(Tx& tx, std::span<const Event> events) {
  if (events.empty()) {
    throw Error(ErrorCode::invalid_argument, "cannot publish", "the list of events is empty");
  }
  if (!tx.active()) require_active(tx, "cannot publish event '" + events.front().type() + "'");

  auto pending = std::make_unique<Staged::Pending>();
  const TimePoint now = options_.clock->now();
  const auto delayed = [&](const Event& event) { return event.deliver_at() && *event.deliver_at() > now; };
  std::vector<std::size_t> sizes;  // of those that may be delivered at once
  sizes.reserve(events.size());
  for (const Event& event : events) {
    if (!delayed(event)) sizes.push_back(size_of(event));
  }
  pending->places = OutboxDispatcher::reserve_hot(dispatcher_, sizes);
  const bool running = pending->places.count() > 0 || dispatcher_->accepting();

  // Measured before the rows are written: the local end of a lease must never be later than the one in the
  // row.
  const Duration lease = tx.adopted() ? options_.adopted_lease : options_.lease;
  const SteadyPoint lease_end = options_.clock->steady_now() + lease;
  std::vector<EventId> ids;
  std::vector<NewOutboxRow> rows;
  std::vector<std::string> keys;
  ids.reserve(events.size());
  rows.reserve(events.size());
  keys.reserve(events.size());
  std::size_t dropped = 0;
  for (const Event& event : events) {
    ids.push_back(event.id());
    keys.push_back(ordering_key(event));
    NewOutboxRow& row = rows.emplace_back();
    row.event = &event;
    row.ordering_key = keys.back();
    if (delayed(event)) {
      const Duration wait = std::min<Duration>(*event.deliver_at() - now, std::chrono::hours{24});
      pending->delayed.push_back(options_.clock->steady_now() + wait);
      continue;
    }
    const std::size_t place = pending->hot.size();
    if (place == pending->places.count()) {
      ++dropped;
      continue;
    }
    row.lease = lease;
    pending->hot.push_back(
        {event, birth_token, Attempt{0}, Source::hot, keys.back(), lease_end, {}, sizes[place]});
  }

  failpoint("outbox.insert.before");
  store_.insert(tx, options_.owner, rows);
  failpoint("outbox.insert.after");

  if (running && dropped > 0) warn_dropped(dropped);
  pending->left_to_poller = dropped > 0;
  pending->store = &store_;
  pending->dispatcher = dispatcher_;
  pending->lease = options_.lease;
  pending->clock = options_.clock;
  pending->log = options_.log;
  if (tx.adopted()) return Staged(std::move(ids), std::move(pending));

  // A rollback and a forgotten transaction end the same way: the callbacks are destroyed, and with them the
  // places go back.
  auto& own = static_cast<Transaction&>(tx);
  const std::shared_ptr<detail::PartialRollbacks>& rollbacks = own.partial_rollbacks();
  if (rollbacks->count > 0) rollbacks->published_since.insert(ids.begin(), ids.end());
  const std::shared_ptr<Staged::Pending> handover(std::move(pending));
  own.after_doubt([handover] { handover->in_doubt(); });
  own.after_commit(
      [handover, rollbacks, count = rollbacks->count] { handover->committed(*rollbacks, count); });
  return Staged(std::move(ids), nullptr);
}

std::string OutboxClient::ordering_key(const Event& event) const {
  if (!event.ordering_key().empty()) return event.ordering_key();
  if (!options_.order_by_aggregate || event.aggregate_id().empty()) return {};
  return event.aggregate_type() + ":" + event.aggregate_id();
}

void OutboxClient::warn_dropped(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) options_.metrics->increment_hot_dropped();
  std::size_t total = 0;
  {
    const MutexLock lock(warning_mutex_);
    dropped_since_ += count;
    const SteadyPoint now = options_.clock->steady_now();
    if (now < next_warning_) return;
    next_warning_ = now + between_warnings;
    total = std::exchange(dropped_since_, 0);
  }
  options_.log(LogLevel::warning, "postrider: the hot queue is full; the poller will bring " +
                                      counted(total, "event") +
                                      ". Hint: more workers, faster listeners or a larger "
                                      "hot_queue_capacity (or hot_queue_bytes, if the events are large)");
}

}  // namespace postrider
