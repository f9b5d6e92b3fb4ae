// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "postrider/clock.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"
#include "postrider/publisher.hpp"
#include "postrider/relay_admin.hpp"
#include "postrider/retry_policy.hpp"
#include "postrider/service.hpp"
#include "postrider/storage.hpp"
#include "postrider/topic.hpp"

namespace postrider {

/// How polls of a pair that find nothing become rarer: the first `threshold` of them leave the polling
/// interval as it is, each further one multiplies it, up to `max`. One event published, and it is as before.
/// Polls that fail do not count. (An append through the same Storage, and but for MariaDB on any node, is
/// noticed at once all the same.)
struct IdleBackoff {
  bool enabled = true;
  int threshold = 3;                        ///< 0 to 1000
  int multiplier = 2;                       ///< 1 to 1000
  Duration max = std::chrono::seconds{60};  ///< 1 ms to 1 day

  friend bool operator==(const IdleBackoff&, const IdleBackoff&) = default;
};

/// What to do with an event that its publisher has refused `max_failures` times.
enum class PoisonAction : std::uint8_t {
  stop,         ///< the pair is FAILED at that event until `RelayAdmin::resume`
  dead_letter,  ///< it is noted in table outbox_dead_letter, and the pair goes on behind it
};

/// Where a pair begins that nobody has run before.
class StartAt {
 public:
  [[nodiscard]] static StartAt beginning() { return StartAt(Position{0}); }
  /// With what is appended from the first start on.
  [[nodiscard]] static StartAt head() { return StartAt(std::nullopt); }
  /// Behind this position; `start` refuses one beyond the store's head.
  [[nodiscard]] static StartAt after(Position position) { return StartAt(position); }
  /// Empty: the head.
  [[nodiscard]] const std::optional<Position>& position() const noexcept { return position_; }

 private:
  explicit StartAt(std::optional<Position> position) : position_(position) {}
  std::optional<Position> position_;
};

struct PairOptions {
  Duration polling_interval = std::chrono::seconds{1};  ///< 1 ms to 1 day
  std::size_t batch_size = 100;                         ///< 1 to 10,000
  IdleBackoff backoff{};
  StartAt start = StartAt::beginning();
  PoisonAction poison = PoisonAction::stop;
  int max_failures = 10;                              ///< 1 to 1,000,000
  std::shared_ptr<const RetryPolicy> retry_policy{};  ///< default: exponential, 200 ms to 60 s
};

enum class Leadership : std::uint8_t {
  global,    ///< one node leads all pairs, the others wait to take over
  balanced,  ///< the living nodes share them
};

/// Everything that can be set, with its default. `Relay`'s constructor checks each value and names the one it
/// refuses.
struct RelayOptions {
  Leadership leadership = Leadership::global;  ///< the same on all nodes
  /// How long a node that stands still keeps its pairs. One that is dead loses them with the next heartbeat
  /// of another, because its lock is free.
  Duration lease = std::chrono::seconds{10};     ///< 300 ms to 1 hour
  Duration heartbeat = std::chrono::seconds{1};  ///< 10 ms to a third of the lease
  /// Threads that publish. More are made, up to `max_workers`, while all are held up by slow publishers.
  std::size_t workers = 3;       ///< 1 to 64
  std::size_t max_workers = 64;  ///< from `workers` to 1024
  /// The newest events, read once for all pairs, are kept up to this size.
  std::size_t tail_bytes = std::size_t{16} << 20U;  ///< 64 KiB to 1 GiB
  /// A batch ends behind the event that reaches it. So at most `max_workers` times this is in flight. What is
  /// read ahead for pairs that are behind takes at most `tail_bytes` besides.
  std::size_t batch_bytes = std::size_t{1} << 20U;  ///< 1 KiB to 256 MiB
  /// How many batches a pair may be ahead of its progress in the database, where writes are shared. As many
  /// may be published again after a crash.
  std::size_t unwritten_batches = 64;  ///< 1 to 1000
  /// How often the place of pairs is written that have looked on and found nothing of their topic.
  Duration idle_checkpoint = std::chrono::seconds{10};  ///< 100 ms to 1 day
  /// How long `stop` waits for a database that is away.
  Duration stop_timeout = std::chrono::seconds{10};

  /// Names this node in the tables (at most 48 characters; a random tail is added). Default: host name and
  /// process id.
  std::string node_name{};
  /// Must outlive the relay; both are shared, not owned.
  Clock* clock = nullptr;              ///< default: Clock::system()
  MetricsExporter* metrics = nullptr;  ///< default: counts nothing
  LogCallback log = log_to_stderr();
};

/// How rarely this node polls for a pair, or how long it waits after a failure.
struct BackoffStatus {
  std::int64_t empty_polls = 0;  ///< in a row
  Duration delay{};              ///< between the last poll, or attempt, and the next
  bool backing_off = false;      ///< idle, and polled more rarely than at the polling interval
  /// The last attempt failed, its publisher was not healthy, or this node's lease is in doubt: not before
  /// `until`, whatever is appended. `Relay::wake` ends it; after a failure also `RelayAdmin::resume` and
  /// `reset`.
  bool retrying = false;
  std::optional<TimePoint> until{};  ///< the next poll or attempt; empty while it publishes, or is not ACTIVE
};

/// Publishes the event store's events, in the order of their positions, to any number of publishers. Give all
/// nodes the same pairs: each is led by one node at a time. At-least-once: an event may come again after a
/// crash, and then in order too. Thread-safe.
///
///     Relay relay{*storage};
///     relay.add({.name = "wallet-events", .required_tags = {"wallet_id"}},
///     std::make_shared<KafkaPublisher>()); relay.start();
class Relay final : public Service {
 public:
  /// Throws Error(invalid_argument) for an option out of bounds. Touches the database only when started.
  explicit Relay(Storage& storage, RelayOptions options = {});
  ~Relay() override;
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// A pair: this topic's events go to this publisher. Before `start`, or while stopped. One topic may have
  /// many publishers, one publisher object many topics. Throws Error(conflict) when the pair is here already,
  /// when the topic was described otherwise before, or when another object has the publisher's name.
  Relay& add(Topic topic, std::shared_ptr<Publisher> publisher, PairOptions options = {});

  void start() override;
  /// Finishes the batches that are being published, writes progress, and hands the pairs over to other nodes.
  /// Throws Error(invalid_argument) inside `publish_batch`.
  void stop() override;
  [[nodiscard]] bool running() const noexcept override;

  /// There may be new events, and receivers that were away may be back: looks at once, also for pairs that
  /// pause after a failure. Appends through the same Storage do the former by themselves.
  void wake() noexcept;
  /// Heartbeat, polls and batches that are due, on this thread, until nothing is left. Returns how many
  /// events were published. For tests and for programs with a schedule of their own; not while started.
  std::size_t run_once();

  /// For watchdogs: for how long its scheduler or its heartbeat should have been heard of. Zero unless one
  /// hangs; a database that is away, and publishers that take long, are no reason. Never blocks.
  [[nodiscard]] Duration overdue() const noexcept;

  [[nodiscard]] RelayAdmin& admin() noexcept;
  /// This node's name in the tables.
  [[nodiscard]] const std::string& node() const noexcept;
  /// How many pairs this node leads.
  [[nodiscard]] std::size_t led() const;
  /// Threads of this relay that publish.
  [[nodiscard]] std::size_t workers() const;
  /// Empty for a pair that this node does not lead.
  [[nodiscard]] std::optional<BackoffStatus> backoff(const std::string& topic,
                                                     const std::string& publisher) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace postrider
