// SPDX-License-Identifier: Apache-2.0
// The scheduler's books: pairs, topics, publishers, timers, and what the leader says. See also
// scheduler_run.cpp.
#include "relay/scheduler.hpp"

#include <algorithm>

#include "core/text_bounds.hpp"
#include "postrider/error.hpp"
#include "relay/topic.hpp"

namespace postrider {
namespace {

std::int64_t value(Epoch epoch) {
  return static_cast<std::int64_t>(epoch);
}

[[noreturn]] void refuse_pair(const PairName& name, std::string_view why, std::string_view hint) {
  throw Error(ErrorCode::conflict,
              "cannot add topic '" + name.topic + "' for publisher '" + name.publisher + "'", why, hint);
}

}  // namespace

Scheduler::Scheduler(StreamStore& stream, ProgressWriter& writer, Options options)
    : stream_(stream),
      writer_(writer),
      options_(std::move(options)),
      tail_(options_.tail_bytes),
      ahead_(options_.tail_bytes, options_.batch_bytes),
      engine_(std::random_device{}()) {}

Scheduler::~Scheduler() {
  stop();
}

void Scheduler::add(Topic topic, std::shared_ptr<Publisher> publisher, PairOptions options) {
  if (publisher == nullptr) throw Error(ErrorCode::invalid_argument, "cannot add a publisher that is null");
  topic.check();
  const std::string publisher_name = publisher->name();
  check_text_bounds("cannot add a publisher", "name", publisher_name, 1, Topic::max_name_chars);
  if (options.retry_policy == nullptr)
    options.retry_policy = std::make_shared<ExponentialBackoffRetryPolicy>();

  const MutexLock lock(mutex_);
  const PairName name{topic.name, publisher_name};
  if (started_) refuse_pair(name, "the relay runs", "stop it first");
  if (by_name_.contains(name)) refuse_pair(name, "this relay has the pair already", "add it once");
  const auto known_topic = topics_.find(topic.name);
  if (known_topic != topics_.end() && known_topic->second->topic != topic) {
    refuse_pair(name, "the topic was described otherwise before", "give it another name");
  }
  const auto known_publisher = publishers_.find(publisher_name);
  if (known_publisher != publishers_.end() && known_publisher->second->publisher != publisher) {
    refuse_pair(name, "another publisher object has that name", "share the object, or give it another name");
  }

  auto& topic_entry = topics_[topic.name];
  if (topic_entry == nullptr) {
    Query query = query_of(topic);
    topic_entry =
        std::make_unique<TopicEntry>(TopicEntry{.topic = std::move(topic), .query = std::move(query)});
    for (const std::string& type : topic_entry->topic.event_types)
      by_type_[type].push_back(topic_entry.get());
    if (topic_entry->topic.event_types.empty()) any_type_.push_back(topic_entry.get());
  }
  auto& publisher_entry = publishers_[publisher_name];
  if (publisher_entry == nullptr) {
    publisher_entry = std::make_unique<PublisherEntry>();
    publisher_entry->parallel = std::max<std::size_t>(1, publisher->parallel());
    publisher_entry->publisher = std::move(publisher);
  }
  auto pair = std::make_unique<Pair>(std::move(options));
  pair->number = pairs_.size();
  pair->name = name;
  pair->topic = topic_entry.get();
  pair->publisher = publisher_entry.get();
  by_name_.emplace(name, pair.get());
  topic_entry->pairs.push_back(pair.get());
  pairs_.push_back(std::move(pair));
  tail_started_ = false;  // it has not looked for this topic
}

std::vector<NewPair> Scheduler::new_pairs(Position head) const {
  const MutexLock lock(mutex_);
  std::vector<NewPair> pairs;
  pairs.reserve(pairs_.size());
  for (const auto& pair : pairs_) {
    const Position start = pair->options.start.position().value_or(head);
    if (start > head) {
      throw Error(ErrorCode::invalid_argument,
                  "cannot start topic '" + pair->name.topic + "' for publisher '" + pair->name.publisher +
                      "' after position " + std::to_string(static_cast<std::int64_t>(start)),
                  "the store's head is " + std::to_string(static_cast<std::int64_t>(head)),
                  "StartAt::head() begins with what is appended from now on");
    }
    pairs.push_back({pair->name, start});
  }
  return pairs;
}

Scheduler::Pair* Scheduler::find(const PairName& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

bool Scheduler::able(const Pair& pair) const {
  return pair.led && !pair.doubtful && pair.state == PairState::active;
}

void Scheduler::rest(Pair& pair) {
  if (pair.stage == Stage::running) return;  // finds out by itself
  if (pair.stage == Stage::timed) timers_.erase({pair.due, &pair});
  // In the other lists it stays, and is passed over.
  pair.stage = Stage::resting;
}

void Scheduler::schedule(Pair& pair, Duration delay, bool failing) {
  pair.stage = Stage::timed;
  pair.failing = failing;
  pair.delay = delay;
  pair.due = options_.clock->steady_now() + delay;
  const auto place = timers_.emplace(pair.due, &pair).first;
  if (place == timers_.begin()) changed_.notify_one();
}

void Scheduler::list(PublisherEntry& publisher) {
  if (publisher.listed || publisher.ready.empty() || publisher.running >= publisher.parallel) return;
  publisher.listed = true;
  runnable_.push_back(&publisher);
  changed_.notify_one();
}

void Scheduler::make_ready(Pair& pair) {
  if (!able(pair)) return;
  switch (pair.stage) {
    case Stage::running:
      pair.again = true;
      return;
    case Stage::ready:
    case Stage::writing:
    case Stage::reading:
      return;
    case Stage::timed:
      if (pair.failing && pair.due > options_.clock->steady_now()) return;
      break;
    case Stage::polling:
    case Stage::resting:
      break;
  }
  rest(pair);
  pair.stage = Stage::ready;
  pair.publisher->ready.push_back(&pair);
  list(*pair.publisher);
}

void Scheduler::lead_one(Pair& pair, const LedPair& led) {
  if (!pair.led) ++led_;
  rest(pair);
  ahead_.drop(pair.ahead);
  pair.led = true;
  pair.doubtful = false;
  if (pair.term.epoch != led.epoch) pair.stop_unwritten = false;  // its write is refused, or was undone
  pair.term = {led.epoch, pair.term.number + 1};
  pair.state = pair.stop_unwritten ? PairState::failed : led.state;
  pair.position = led.position;
  pair.stored = led.position;
  pair.unwritten = 0;
  pair.failing = false;
  pair.health = PairHealth(pair.options, led.error_count);
  make_ready(pair);
}

void Scheduler::leave_one(Pair& pair) {
  if (!pair.led) return;
  pair.led = false;
  pair.stop_unwritten = false;
  --led_;
  rest(pair);
  ahead_.drop(pair.ahead);
}

void Scheduler::lead(const std::vector<LedPair>& pairs) {
  const MutexLock lock(mutex_);
  if (led_ == 0) tail_started_ = false;  // what it knows may be from long ago
  for (const LedPair& led : pairs) {
    if (Pair* const pair = find(led.name)) lead_one(*pair, led);
  }
  refresh_wanted_ = true;
  changed_.notify_one();
}

void Scheduler::leave(const std::vector<PairName>& pairs) {
  const MutexLock lock(mutex_);
  for (const PairName& name : pairs) {
    if (Pair* const pair = find(name)) leave_one(*pair);
  }
}

void Scheduler::leave_all() {
  const MutexLock lock(mutex_);
  for (const auto& pair : pairs_) leave_one(*pair);
}

void Scheduler::reconcile(const std::vector<LedPair>& pairs) {
  std::map<PairName, const LedPair*> listed;
  for (const LedPair& pair : pairs) listed.emplace(pair.name, &pair);
  const MutexLock lock(mutex_);
  for (const auto& pair : pairs_) {
    const auto found = listed.find(pair->name);
    if (found == listed.end()) {
      leave_one(*pair);
    } else if (!pair->led || pair->doubtful || pair->term.epoch != found->second->epoch) {
      if (pair->doubtful) proven_until_.reset();
      lead_one(*pair, *found->second);
    }
  }
  refresh_wanted_ = true;
  changed_.notify_one();
}

std::uint64_t Scheduler::ticket() const {
  const MutexLock lock(mutex_);
  return last_ticket_;
}

void Scheduler::set_at_rest(const std::vector<LedPair>& pairs, std::uint64_t ticket) {
  std::map<PairName, PairState> at_rest;
  for (const LedPair& pair : pairs) at_rest.emplace(pair.name, pair.state);
  const MutexLock lock(mutex_);
  for (const auto& pair : pairs_) {
    if (!pair->led || pair->stop_unwritten || pair->stop_ticket > ticket) continue;
    const auto found = at_rest.empty() ? at_rest.end() : at_rest.find(pair->name);
    const PairState state = found == at_rest.end() ? PairState::active : found->second;
    if (state == pair->state) continue;
    pair->state = state;
    if (state == PairState::active) {
      pair->health = PairHealth(pair->options);
      pair->failing = false;
      make_ready(*pair);
    } else {
      rest(*pair);
      ahead_.drop(pair->ahead);
    }
  }
}

Scheduler::Digest Scheduler::digest() const {
  const MutexLock lock(mutex_);
  Digest digest;
  for (const auto& pair : pairs_) {
    if (!pair->led) continue;
    ++digest.pairs;
    digest.epochs += value(pair->term.epoch);
    digest.doubtful = digest.doubtful || pair->doubtful;
  }
  return digest;
}

std::vector<PairName> Scheduler::not_led() const {
  const MutexLock lock(mutex_);
  std::vector<PairName> names;
  for (const auto& pair : pairs_) {
    if (!pair->led) names.push_back(pair->name);
  }
  return names;
}

std::vector<PairName> Scheduler::led() const {
  const MutexLock lock(mutex_);
  std::vector<PairName> names;
  for (const auto& pair : pairs_) {
    if (pair->led) names.push_back(pair->name);
  }
  return names;
}

bool Scheduler::has(const PairName& name) const {
  const MutexLock lock(mutex_);
  return by_name_.contains(name);
}

std::vector<PairName> Scheduler::spare(std::size_t count) {
  const MutexLock lock(mutex_);
  std::vector<PairName> names;
  for (const auto& pair : pairs_) {
    if (names.size() == count) break;
    if (!pair->led || pair->stage == Stage::running || pair->unwritten > 0) continue;
    leave_one(*pair);
    names.push_back(pair->name);
  }
  return names;
}

void Scheduler::checkpoint() {
  const MutexLock lock(mutex_);
  if (proven(options_.clock->steady_now())) return write_checkpoint();
  checkpoint_wanted_ = true;
  refresh_wanted_ = true;
  if (led_ > 0) changed_.notify_one();
}

void Scheduler::write_checkpoint() {
  for (const auto& pair : pairs_) {
    if (!able(*pair) || pair->stage == Stage::running || pair->unwritten > 0) continue;
    catch_up(*pair);
    if (pair->position <= pair->stored) continue;
    ++pair->unwritten;
    writer_.submit(pair->number, ProgressStep{.name = pair->name,
                                              .epoch = pair->term.epoch,
                                              .from = pair->stored,
                                              .to = pair->position,
                                              .published = false});
    pair->stored = pair->position;
  }
}

void Scheduler::on_written(const std::vector<ProgressWriter::Written>& written) {
  bool doubt = false;
  {
    const MutexLock lock(mutex_);
    for (const ProgressWriter::Written& one : written) {
      Pair& pair = *pairs_[one.pair];
      if (!pair.led || pair.term.epoch != one.epoch) continue;
      if (one.failure) {
        pair.stop_unwritten = false;
        pair.stop_ticket = ++last_ticket_;
        continue;
      }
      pair.unwritten -= std::min(pair.unwritten, one.steps);
      if (!one.done && !pair.doubtful) {
        pair.doubtful = true;
        doubt = true;
        rest(pair);
        ahead_.drop(pair.ahead);
      } else if (pair.stage == Stage::writing) {
        pair.stage = Stage::resting;
        make_ready(pair);
      }
    }
  }
  if (doubt && options_.on_doubt) options_.on_doubt();
}

std::size_t Scheduler::threads() const {
  const MutexLock lock(mutex_);
  return threads_.size();
}

std::optional<BackoffStatus> Scheduler::backoff(const PairName& name) const {
  const MutexLock lock(mutex_);
  const Pair* const pair = find(name);
  if (pair == nullptr || !pair->led) return std::nullopt;
  BackoffStatus status = pair->health.backoff();
  if (pair->stage != Stage::timed) return status;
  const SteadyPoint now = options_.clock->steady_now();
  status.until = options_.clock->now() + std::chrono::duration_cast<Duration>(std::max(pair->due, now) - now);
  status.delay = pair->delay;
  status.retrying = pair->failing;
  return status;
}

double Scheduler::random() {
  const MutexLock lock(mutex_);
  return std::uniform_real_distribution<double>(0.0, 1.0)(engine_);
}

}  // namespace postrider
