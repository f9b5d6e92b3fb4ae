// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/sign_of_life.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/relay.hpp"
#include "postrider/stream_query.hpp"
#include "relay/pair.hpp"
#include "relay/progress_writer.hpp"
#include "relay/read_ahead.hpp"
#include "relay/tail.hpp"
#include "storage/progress_store.hpp"
#include "storage/stream_store.hpp"

namespace postrider {

/// Decides when which pair publishes, and does it: one structure of timers, one queue per publisher, and a
/// few threads that all do whatever is next. No pair and no publisher has a thread of its own. Thread-safe.
///
/// Pairs at the head live off the tail, which is read once for all of them; only one that is behind it reads
/// for itself, and the next page while one is published. A pair without events costs a timer. New events wake
/// exactly the pairs whose topics they are of.
class Scheduler {
 public:
  struct Options {
    std::string node{};
    std::size_t workers = 3;
    std::size_t max_workers = 64;
    std::size_t tail_bytes = std::size_t{16} << 20U;
    std::size_t batch_bytes = std::size_t{1} << 20U;
    std::size_t unwritten_batches = 64;
    /// Asked before each batch: whether this node's lease is surely ours at this moment. Never blocks.
    std::function<bool()> may_publish{};
    /// A write was refused: somebody else leads or moved the pair. Quick.
    std::function<void()> on_doubt{};
    Duration retry_gate = std::chrono::seconds{1};  ///< how long to rest when the lease is not ours
    Clock* clock = nullptr;
    MetricsExporter* metrics = nullptr;
    LogCallback log{};
  };

  /// Both must outlive it.
  Scheduler(StreamStore& stream, ProgressWriter& writer, Options options);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// See Relay::add. While stopped.
  void add(Topic topic, std::shared_ptr<Publisher> publisher, PairOptions options) POSTRIDER_EXCLUDES(mutex_);
  /// Throws Error(invalid_argument) for one that is to start beyond the head.
  [[nodiscard]] std::vector<NewPair> new_pairs(Position head) const POSTRIDER_EXCLUDES(mutex_);

  // The leader's side. It calls them on one thread at a time.
  /// Leads these from now on, or anew: epoch, position and state are as given.
  void lead(const std::vector<LedPair>& pairs) POSTRIDER_EXCLUDES(mutex_);
  /// Leads these no longer. A batch that is being published is not counted any more.
  void leave(const std::vector<PairName>& pairs) POSTRIDER_EXCLUDES(mutex_);
  void leave_all() POSTRIDER_EXCLUDES(mutex_);
  /// What the database says that this node leads: those that it knows otherwise are led anew, others left.
  void reconcile(const std::vector<LedPair>& pairs) POSTRIDER_EXCLUDES(mutex_);
  /// Taken before the database is asked for what `set_at_rest` is told.
  [[nodiscard]] std::uint64_t ticket() const POSTRIDER_EXCLUDES(mutex_);
  /// Of those led, these are not ACTIVE and all others are. What was stopped here since the ticket stays
  /// stopped.
  void set_at_rest(const std::vector<LedPair>& pairs, std::uint64_t ticket) POSTRIDER_EXCLUDES(mutex_);
  struct Digest {
    std::int64_t pairs = 0;
    std::int64_t epochs = 0;
    bool doubtful = false;
  };
  [[nodiscard]] Digest digest() const POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<PairName> not_led() const POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<PairName> led() const POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] bool has(const PairName& name) const POSTRIDER_EXCLUDES(mutex_);
  /// Leaves up to `count` pairs that do nothing just now, all written, and returns them.
  [[nodiscard]] std::vector<PairName> spare(std::size_t count) POSTRIDER_EXCLUDES(mutex_);
  /// Writes where idle pairs stand, when the store has been looked at.
  void checkpoint() POSTRIDER_EXCLUDES(mutex_);
  /// For the progress writer.
  void on_written(const std::vector<ProgressWriter::Written>& written) POSTRIDER_EXCLUDES(mutex_);

  /// There may be new events. Quick.
  void wake() noexcept POSTRIDER_EXCLUDES(mutex_);
  /// Pairs that pause after a failure try again now.
  void end_pauses() noexcept POSTRIDER_EXCLUDES(mutex_);
  void start() POSTRIDER_EXCLUDES(mutex_);
  /// Batches that are being published end first.
  void stop() POSTRIDER_EXCLUDES(mutex_);
  /// Does what is to be done now on this thread. False when there was nothing. While stopped.
  bool step() POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] bool inside() const noexcept;  ///< this thread is in a publisher's call

  [[nodiscard]] std::size_t published() const noexcept { return published_; }
  [[nodiscard]] std::size_t threads() const POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] const SignOfLife& sign_of_life() const noexcept { return sign_of_life_; }
  [[nodiscard]] std::optional<BackoffStatus> backoff(const PairName& name) const POSTRIDER_EXCLUDES(mutex_);

 private:
  struct Pair;
  struct TopicEntry {
    Topic topic;
    Query query;
    Position last_match{};  ///< of what the tail has seen
    std::vector<Pair*> pairs{};
  };
  struct PublisherEntry {
    std::shared_ptr<Publisher> publisher;
    std::size_t parallel = 1;
    std::deque<Pair*> ready{};
    std::size_t running = 0;
    bool listed = false;  ///< in runnable_
    bool healthy = true;  ///< as it last said
  };
  /// One time of leading a pair. A batch that was begun in an earlier one must not count, though the epoch
  /// may be the same: that comes from the database, which may have been set back.
  struct Term {
    Epoch epoch{};
    std::uint64_t number = 0;

    friend bool operator==(const Term&, const Term&) = default;
  };
  enum class Stage { resting, timed, polling, ready, running, writing, reading };
  struct Pair {
    explicit Pair(PairOptions the_options) : options(std::move(the_options)), health(options) {}
    std::size_t number = 0;
    PairName name{};
    const PairOptions options;
    TopicEntry* topic = nullptr;
    PublisherEntry* publisher = nullptr;
    PairHealth health;
    bool led = false;
    bool doubtful = false;  ///< a write was refused: wait for the leader
    Term term{};
    PairState state = PairState::active;
    bool stop_unwritten = false;    ///< FAILED here, and not yet in the database
    std::uint64_t stop_ticket = 0;  ///< when it was written
    Position position{};            ///< everything up to here is done
    Position stored{};              ///< as far as it is in the database, or on its way there
    std::size_t unwritten = 0;
    ReadAhead::Lane ahead{};
    Stage stage = Stage::resting;
    bool failing = false;  ///< timed, because the last batch failed
    bool again = false;    ///< while it ran, something happened
    SteadyPoint due{};
    Duration delay{};
  };
  /// How a run ended.
  struct RunEnd {
    bool more = false;
    std::size_t sent = 0;
    bool looked = true;  ///< false: not allowed to, or it could not
    std::optional<Duration> failed{};
  };

  [[nodiscard]] Pair* find(const PairName& name) const POSTRIDER_REQUIRES(mutex_);
  void lead_one(Pair& pair, const LedPair& led) POSTRIDER_REQUIRES(mutex_);
  void leave_one(Pair& pair) POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] bool able(const Pair& pair) const POSTRIDER_REQUIRES(mutex_);
  void rest(Pair& pair) POSTRIDER_REQUIRES(mutex_);
  void schedule(Pair& pair, Duration delay, bool failing) POSTRIDER_REQUIRES(mutex_);
  void make_ready(Pair& pair) POSTRIDER_REQUIRES(mutex_);
  void list(PublisherEntry& publisher) POSTRIDER_REQUIRES(mutex_);
  /// Moves it over what the tail has seen and is not of its topic.
  void catch_up(Pair& pair) const POSTRIDER_REQUIRES(mutex_);
  void fire_timers(SteadyPoint now) POSTRIDER_REQUIRES(mutex_);
  void route(const std::vector<StoredEvent>& events) POSTRIDER_REQUIRES(mutex_);
  void end_polls(bool looked) POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] bool wants_refresh(SteadyPoint now) const POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] Pair* take_ready() POSTRIDER_REQUIRES(mutex_);

  /// Whether what is in the tail was lately seen to be what is in the store.
  [[nodiscard]] bool proven(SteadyPoint now) const POSTRIDER_REQUIRES(mutex_);
  void refresh() POSTRIDER_EXCLUDES(mutex_);
  void begin_tail() POSTRIDER_EXCLUDES(mutex_);
  /// Reads what is new. False when the store does not end, or go on, as it was known.
  [[nodiscard]] bool read_on(StreamEnd end) POSTRIDER_EXCLUDES(mutex_);
  /// The store was set back: nothing that this object knows of it holds.
  void forget_all(const StreamEnd& known) POSTRIDER_EXCLUDES(mutex_);
  void write_checkpoint() POSTRIDER_REQUIRES(mutex_);
  void run(Pair& pair) POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] RunEnd publish(Pair& pair) POSTRIDER_EXCLUDES(mutex_);
  /// Asks it, and tells the log when the answer is another one than before.
  [[nodiscard]] bool look_at_health(PublisherEntry& entry, const std::string& name)
      POSTRIDER_EXCLUDES(mutex_);
  /// Nothing when the page is being read by another thread.
  [[nodiscard]] std::optional<Batch> own_page(Pair& pair, const Term& term, Position after)
      POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] Batch read_own(Pair& pair, const Term& term, Position after) POSTRIDER_EXCLUDES(mutex_);
  void read_ahead(Pair& pair, const Term& term, const ReadAhead::PagePtr& page) POSTRIDER_EXCLUDES(mutex_);
  /// Whether a thread can be spared to read ahead.
  [[nodiscard]] bool may_read_ahead() POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] PublishResult call(Pair& pair, std::span<const StoredEvent> events, Epoch epoch,
                                   bool& culprit_known);
  /// Books what was sent. False when the pair is not ours any more.
  [[nodiscard]] bool book(Pair& pair, const Term& term, Position to, bool sent,
                          std::optional<std::string> dead) POSTRIDER_EXCLUDES(mutex_);
  void end_run(Pair& pair, const RunEnd& end) POSTRIDER_EXCLUDES(mutex_);
  double random() POSTRIDER_EXCLUDES(mutex_);

  void work() POSTRIDER_EXCLUDES(mutex_);
  /// Whether this thread may leave the others to themselves and call a publisher.
  [[nodiscard]] bool may_leave(SteadyPoint now) POSTRIDER_REQUIRES(mutex_);
  void spawn() POSTRIDER_REQUIRES(mutex_);
  /// This thread is about to call somebody else; those who wait keep the watch.
  void leave_loop() POSTRIDER_REQUIRES(mutex_);

  StreamStore& stream_;
  ProgressWriter& writer_;
  const Options options_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<Pair>> pairs_ POSTRIDER_GUARDED_BY(mutex_);
  std::map<PairName, Pair*> by_name_ POSTRIDER_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<TopicEntry>> topics_ POSTRIDER_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::vector<TopicEntry*>> by_type_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<TopicEntry*> any_type_ POSTRIDER_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<PublisherEntry>> publishers_ POSTRIDER_GUARDED_BY(mutex_);
  std::size_t led_ POSTRIDER_GUARDED_BY(mutex_) = 0;

  std::set<std::pair<SteadyPoint, Pair*>> timers_ POSTRIDER_GUARDED_BY(mutex_);
  std::deque<PublisherEntry*> runnable_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<Pair*> polled_ POSTRIDER_GUARDED_BY(mutex_);

  Tail tail_ POSTRIDER_GUARDED_BY(mutex_);
  ReadAhead ahead_ POSTRIDER_GUARDED_BY(mutex_);
  bool tail_started_ POSTRIDER_GUARDED_BY(mutex_) = false;
  Position routed_from_ POSTRIDER_GUARDED_BY(mutex_){};
  SteadyPoint refreshed_at_ POSTRIDER_GUARDED_BY(mutex_){};
  std::optional<SteadyPoint> proven_until_ POSTRIDER_GUARDED_BY(mutex_);
  bool checkpoint_wanted_ POSTRIDER_GUARDED_BY(mutex_) = false;
  SteadyPoint not_before_ POSTRIDER_GUARDED_BY(mutex_){};  // after a failed refresh
  bool refresh_wanted_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool refreshing_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool complained_ POSTRIDER_GUARDED_BY(mutex_) = false;

  std::mt19937_64 engine_ POSTRIDER_GUARDED_BY(mutex_);
  bool started_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::uint64_t last_ticket_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::size_t waiting_ POSTRIDER_GUARDED_BY(mutex_) = 0;  // threads
  std::list<std::thread> threads_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<std::thread> ended_ POSTRIDER_GUARDED_BY(mutex_);
  std::optional<SteadyPoint> stuck_since_ POSTRIDER_GUARDED_BY(mutex_);
  std::atomic<std::size_t> published_{0};
  /// Of those threads that are not in a call to the store or to a publisher. Written with the mutex.
  SignOfLife sign_of_life_;
};

}  // namespace postrider
