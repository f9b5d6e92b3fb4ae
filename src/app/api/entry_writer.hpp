// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "core/bounded_queue.hpp"
#include "postrider/clock.hpp"
#include "postrider/error.hpp"
#include "postrider/log.hpp"
#include "storage/entry_store.hpp"

namespace postrider::api {

struct EntryWriterOptions {
  /// Calls that wait to be written; beyond them `submit` says no.
  std::size_t queue_capacity = 512;
  /// Entries of one transaction, about: calls are never parted.
  std::size_t transaction_entries = 4000;
  Clock* clock = nullptr;  ///< null: the system's
  LogCallback log{};
};

/// Group commit: whatever comes in while one transaction is being written goes into the next one, so that a
/// hundred clients with one entry each do not wait for a hundred syncs of the disk. Thread-safe.
///
/// Unlike BatchWriter it does not repeat what failed: here a client waits for an answer, and has the means to
/// send again.
class EntryWriter {
 public:
  /// The database refused the entry for good; its neighbours are not concerned.
  struct Refused {
    std::string reason;
  };
  using Outcome = std::variant<InsertedEntry, Refused>;
  using Outcomes = std::vector<Outcome>;
  /// Called once, on the writer's thread: one outcome per entry, in order, after the commit. Or an error when
  /// none is known to be stored. Does not throw.
  using Done = std::function<void(std::variant<Outcomes, Error> result)>;
  /// Asked before the entries are written: false when nobody waits for them any more. After an outage that
  /// keeps the writer from working off what all clients have sent again meanwhile. Does not throw.
  using Wanted = std::function<bool()>;

  EntryWriter(EntryStore& store, EntryWriterOptions options);
  ~EntryWriter() { stop(); }
  EntryWriter(const EntryWriter&) = delete;
  EntryWriter& operator=(const EntryWriter&) = delete;

  /// False when too many wait, or after `stop`; then `done` is not called. Never blocks. Entries that are not
  /// wanted any more are not written, and `done` is not called for them.
  [[nodiscard]] bool submit(std::vector<Entry> entries, Done done, Wanted wanted = {});
  /// Entries that were submitted, and are neither written nor refused yet.
  [[nodiscard]] std::size_t unfinished() const noexcept { return unfinished_; }
  /// The last transaction failed, and not long ago: whoever sends nothing while that is so must be told some
  /// time that it may work again.
  [[nodiscard]] bool failing() const noexcept;
  /// Writes what was submitted, then ends the thread.
  void stop();

 private:
  struct Call {
    std::vector<Entry> entries;
    Done done;
    Wanted wanted;
  };
  void run();
  void write(std::span<Call> calls);
  /// Halves what is refused until the culprits stand alone.
  void insert(std::span<const Entry> entries, std::span<Outcome> outcomes);
  void note(const Error* failure);

  EntryStore& store_;
  const EntryWriterOptions options_;
  BoundedQueue<Call> queue_;
  std::atomic<std::size_t> unfinished_{0};
  bool failing_ = false;                        // the writer's thread only
  std::atomic<std::int64_t> failing_until_{0};  // of the steady clock; 0: it is not
  std::thread thread_;
};

}  // namespace postrider::api
