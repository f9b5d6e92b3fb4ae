// SPDX-License-Identifier: Apache-2.0
#include "postrider/relay.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/option_check.hpp"
#include "core/sign_of_life.hpp"
#include "core/what_of.hpp"
#include "core/without_prefix.hpp"
#include "postrider/error.hpp"
#include "postrider/event_id.hpp"
#include "relay/leader.hpp"
#include "relay/options.hpp"
#include "relay/progress_writer.hpp"
#include "relay/scheduler.hpp"
#include "storage/stream_store.hpp"
#include "storage/wake_channel.hpp"

namespace postrider {
namespace {

/// How long a management verb in this process waits for the leader to hear of it.
constexpr Duration longest_hearing = std::chrono::seconds{2};

/// Unlike any other relay's, of this process too: whoever has this name is this very object.
std::string unique_node(const std::string& name) {
  if (name.empty()) return default_node_name();
  return name + "/" + new_event_id().str().substr(16);
}

}  // namespace

struct Relay::Parts {
  Parts(Storage& the_storage, RelayOptions given)
      : storage(the_storage),
        options(checked(std::move(given))),
        node(unique_node(options.node_name)),
        admin(storage),
        writer(storage.progress_store(),
               {.stop_timeout = options.stop_timeout,
                .clock = options.clock,
                .metrics = options.metrics,
                .log = options.log},
               [this](const auto& written) { scheduler.on_written(written); }),
        scheduler(storage.stream_store(), writer,
                  {.node = node,
                   .workers = options.workers,
                   .max_workers = options.max_workers,
                   .tail_bytes = options.tail_bytes,
                   .batch_bytes = options.batch_bytes,
                   .unwritten_batches = options.unwritten_batches,
                   .may_publish = [this] { return leader.may_publish(); },
                   .on_doubt = [this] { poke(); },
                   .retry_gate = options.heartbeat,
                   .clock = options.clock,
                   .metrics = options.metrics,
                   .log = options.log}),
        leader(storage.lease_store(), storage.progress_store(), storage.node_locks(), scheduler,
               {.mode = options.leadership,
                .lease = options.lease,
                .node = node,
                .clock = options.clock,
                .metrics = options.metrics,
                .log = options.log,
                .make_rows = [this] { return make_rows(); }}) {}

  /// The leader looks now.
  void poke() POSTRIDER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    ++asked;
    changed.notify_all();
  }
  /// And has looked when this returns, unless the database lets it wait: who pauses a pair in this process
  /// sees no batch begin afterwards.
  void poke_and_wait() POSTRIDER_EXCLUDES(mutex);
  void prepare();
  /// Of the pairs that the database does not know. Returns how many.
  std::size_t make_rows();
  void heartbeat() POSTRIDER_EXCLUDES(mutex);
  void keep() POSTRIDER_EXCLUDES(mutex);

  Storage& storage;
  const RelayOptions options;
  const std::string node;
  RelayAdmin admin;
  ProgressWriter writer;  // they refer to each other; none calls another before all are there
  Scheduler scheduler;
  Leader leader;

  Mutex mutex;
  CondVar changed;
  std::uint64_t asked POSTRIDER_GUARDED_BY(mutex) = 0;     // to look
  std::uint64_t answered POSTRIDER_GUARDED_BY(mutex) = 0;  // by a look that began later
  std::thread::id keeping POSTRIDER_GUARDED_BY(mutex);     // the keeper's thread
  bool stopping POSTRIDER_GUARDED_BY(mutex) = false;
  SignOfLife sign_of_life;        // the keeper's
  bool complained = false;        // the keeper's own
  SteadyPoint next_checkpoint{};  // the keeper's own

  Mutex lifecycle;  // held while starting and stopping
  std::thread keeper POSTRIDER_GUARDED_BY(lifecycle);
  std::uint64_t grown POSTRIDER_GUARDED_BY(lifecycle) = 0;
  std::uint64_t relay_changed POSTRIDER_GUARDED_BY(lifecycle) = 0;
  std::unique_ptr<WakeChannel::Subscription> on_append POSTRIDER_GUARDED_BY(lifecycle);
  std::unique_ptr<WakeChannel::Subscription> on_change POSTRIDER_GUARDED_BY(lifecycle);
  std::atomic<bool> running = false;
};

void Relay::Parts::prepare() {
  storage.stream_store().check_schema();
  (void)make_rows();
}

std::size_t Relay::Parts::make_rows() {
  return storage.progress_store().add(scheduler.new_pairs(storage.stream_store().head()));
}

void Relay::Parts::heartbeat() {
  try {
    leader.round();
    const SteadyPoint now = options.clock->steady_now();
    if (now >= next_checkpoint) {
      next_checkpoint = now + options.idle_checkpoint;
      scheduler.checkpoint();
    }
    if (std::exchange(complained, false))
      options.log(LogLevel::info, "postrider: the relay's heartbeat goes on");
  } catch (const std::exception& error) {
    if (!std::exchange(complained, true)) {
      options.log(LogLevel::warning, "postrider: the relay's heartbeat failed, trying again: " +
                                         std::string(without_prefix(what_of(error))));
    }
  }
}

void Relay::Parts::poke_and_wait() {
  const MutexLock lock(mutex);
  const std::uint64_t mine = ++asked;
  changed.notify_all();
  if (keeping == std::this_thread::get_id()) return;  // somebody's log or metrics call it
  const SteadyPoint patience = options.clock->steady_now() + longest_hearing;
  while (!stopping && answered < mine && options.clock->steady_now() < patience) {
    options.clock->wait_until(changed, mutex, patience);
  }
}

void Relay::Parts::keep() {
  std::uint64_t seen = 0;
  {
    const MutexLock lock(mutex);
    keeping = std::this_thread::get_id();
    seen = asked;
  }
  for (;;) {
    const SteadyPoint next = options.clock->steady_now() + options.heartbeat;
    sign_of_life.elsewhere();
    heartbeat();
    sign_of_life.expect_by(next);
    const MutexLock lock(mutex);
    answered = seen;
    changed.notify_all();
    while (!stopping && asked == answered && options.clock->steady_now() < next) {
      options.clock->wait_until(changed, mutex, next);
    }
    if (stopping) return sign_of_life.elsewhere();
    seen = asked;
  }
}

Relay::Relay(Storage& storage, RelayOptions options)
    : parts_(std::make_unique<Parts>(storage, std::move(options))) {}

Relay::~Relay() {
  stop();
}

Relay& Relay::add(Topic topic, std::shared_ptr<Publisher> publisher, PairOptions options) {
  check(options);
  parts_->scheduler.add(std::move(topic), std::move(publisher), std::move(options));
  return *this;
}

namespace {

/// They would wait for the call that makes them.
void refuse_inside(const Scheduler& scheduler, std::string_view what, std::string_view call,
                   std::string_view hint) {
  if (!scheduler.inside()) return;
  throw Error(ErrorCode::invalid_argument, what, std::string(call) + " was called from a publisher", hint);
}

}  // namespace

void Relay::start() {
  Parts& parts = *parts_;
  refuse_inside(parts.scheduler, "cannot start the relay", "start()", "start it from outside");
  const MutexLock lifecycle(parts.lifecycle);
  if (parts.running) return;
  parts.prepare();
  {
    const MutexLock lock(parts.mutex);
    parts.stopping = false;
  }
  parts.writer.start();
  parts.scheduler.start();
  parts.keeper = std::thread([&parts] { parts.keep(); });
  parts.grown = parts.storage.stream_grown()->subscribe([&parts] { parts.scheduler.wake(); });
  parts.relay_changed = parts.storage.relay_changed()->subscribe([&parts] { parts.poke_and_wait(); });
  if (WakeChannel* const channel = parts.storage.wake_channel()) {
    parts.on_append = channel->listen(wake_topic::stream, [&parts] { parts.scheduler.wake(); });
    parts.on_change = channel->listen(wake_topic::relay, [&parts] { parts.poke(); });
  }
  parts.running = true;
}

void Relay::stop() {
  Parts& parts = *parts_;
  refuse_inside(parts.scheduler, "cannot stop the relay", "stop()", "signal another thread to stop it");
  const MutexLock lifecycle(parts.lifecycle);
  if (!parts.running) {
    parts.leader.hand_over();  // what run_once has taken
    return;
  }
  parts.storage.stream_grown()->unsubscribe(parts.grown);
  parts.storage.relay_changed()->unsubscribe(parts.relay_changed);
  parts.on_append.reset();
  parts.on_change.reset();
  parts.scheduler.stop();
  // Until the last batch is written, the lease is kept.
  parts.writer.stop();
  {
    const MutexLock lock(parts.mutex);
    parts.stopping = true;
    parts.changed.notify_all();
  }
  parts.keeper.join();
  parts.leader.hand_over();
  if (WakeChannel* const channel = parts.storage.wake_channel()) {
    try {
      channel->notify(wake_topic::relay);
    } catch (const std::exception&) {
      // The others see it with their next heartbeat.
    }
  }
  parts.running = false;
}

bool Relay::running() const noexcept {
  return parts_->running;
}

void Relay::wake() noexcept {
  parts_->scheduler.end_pauses();
  parts_->scheduler.wake();
}

std::size_t Relay::run_once() {
  Parts& parts = *parts_;
  refuse_inside(parts.scheduler, "cannot run the relay", "run_once()", "run it from outside");
  const MutexLock lifecycle(parts.lifecycle);
  if (parts.running) {
    throw Error(ErrorCode::invalid_argument, "cannot run the relay on this thread",
                "it is started and does it by itself", "call wake() instead");
  }
  parts.prepare();
  const std::size_t before = parts.scheduler.published();
  for (bool more = true; more;) {
    parts.heartbeat();
    parts.scheduler.wake();
    more = false;
    while (parts.scheduler.step()) {
    }
    const std::size_t published = parts.scheduler.published();
    parts.writer.flush();
    while (parts.scheduler.step()) more = true;  // what had waited for the flush
    // Doubts are for the next heartbeat: somebody moved a pair, or the store was set back.
    more = more || parts.scheduler.published() != published || parts.scheduler.digest().doubtful;
  }
  return parts.scheduler.published() - before;
}

Duration Relay::overdue() const noexcept {
  const SteadyPoint now = parts_->options.clock->steady_now();
  return std::max(parts_->scheduler.sign_of_life().overdue(now), parts_->sign_of_life.overdue(now));
}

RelayAdmin& Relay::admin() noexcept {
  return parts_->admin;
}

const std::string& Relay::node() const noexcept {
  return parts_->node;
}

std::size_t Relay::led() const {
  return static_cast<std::size_t>(parts_->scheduler.digest().pairs);
}

std::size_t Relay::workers() const {
  return parts_->scheduler.threads();
}

std::optional<BackoffStatus> Relay::backoff(const std::string& topic, const std::string& publisher) const {
  return parts_->scheduler.backoff({topic, publisher});
}

}  // namespace postrider
