// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "logger/breaker_gate.hpp"
#include "logger/ledger.hpp"
#include "logger/receiver_news.hpp"
#include "logger/send_queue.hpp"
#include "logger/spill_store.hpp"
#include "logger/spill_writer.hpp"
#include "postrider/async_logger.hpp"

namespace postrider::logger {

/// What senders and the replay share.
struct Outlet {
  Outlet(EventLogClient& the_client, const LoggerOptions& the_options, Ledger& the_ledger,
         SendQueue& the_queue, BreakerGate& the_gate, SpillStore* the_store, SpillWriter* the_writer)
      : client(the_client),
        options(the_options),
        ledger(the_ledger),
        queue(the_queue),
        gate(the_gate),
        store(the_store),
        writer(the_writer),
        news(meanwhile(the_options), the_options.log, *the_options.clock),
        refusals(the_options.log, *the_options.clock) {}

  EventLogClient& client;
  const LoggerOptions& options;
  Ledger& ledger;
  SendQueue& queue;
  BreakerGate& gate;
  SpillStore* store;    ///< null without a spill folder …
  SpillWriter* writer;  ///< … and so is this
  ReceiverNews news;
  RefusalNews refusals;
  std::atomic<bool> stopping{false};

  /// Sends, and tells the gate what came of it. The gate has been entered.
  [[nodiscard]] SendResult send(std::span<const OutgoingEvent> events);
  /// The same for an event that is suspected of making the receiver fail: that it fails again says nothing of
  /// the receiver.
  [[nodiscard]] SendResult send_suspect(const OutgoingEvent& event);
  /// To disk; lost for `reason` when there is none. What the disk has no room for goes back into the queue:
  /// false then, and nothing is gained by coming again at once.
  bool divert(std::span<const EventRef> events, LossReason reason);
  /// Into the dead letters. False when it could not be written there.
  [[nodiscard]] bool bury(std::string_view members, const SendItem& why);

 private:
  [[nodiscard]] SendResult try_send(std::span<const OutgoingEvent> events);
  /// What becomes of events while the receiver fails.
  [[nodiscard]] static std::string meanwhile(const LoggerOptions& options);
};

/// What became of an event that was sent alone.
[[nodiscard]] SendVerdict verdict_of_one(const SendResult& result) noexcept;

/// How long to wait before the next attempt: anything up to base * 2^(failed-1), and up to `max`.
[[nodiscard]] Duration full_jitter(Duration base, Duration max, int failed, double random) noexcept;

/// Takes batches from the queue and sends them. One per sender thread.
class Sender {
 public:
  Sender(Outlet& outlet, std::uint64_t seed) : outlet_(outlet), random_(seed) {}
  /// Until the queue is closed and empty.
  void run();

 private:
  struct Part {
    std::size_t begin;
    std::size_t end;
  };
  void send(std::vector<EventRef>& batch);
  /// May ask for its halves to be sent on their own.
  void settle(const Part& part, const SendResult& result, std::vector<Part>& again);
  void settle_one(std::size_t index, const SendItem& item, const SendResult& result);
  void retry(EventRef event, const SendResult& result);
  void divert(std::span<const EventRef> events, LossReason reason) {
    if (!outlet_.divert(events, reason)) crowded_ = true;
  }

  Outlet& outlet_;
  std::mt19937_64 random_;
  // For the answer that is being settled: its events stay together, and cost one retry.
  double jitter_ = 0;
  std::optional<bool> may_retry_;
  bool crowded_ = false;  // neither the receiver nor the disk takes events
  std::string text_;
  std::vector<EventRef> events_;
  std::vector<OutgoingEvent> outgoing_;
};

}  // namespace postrider::logger
