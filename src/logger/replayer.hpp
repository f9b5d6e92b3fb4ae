// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>
#include <vector>

#include "logger/sender.hpp"
#include "logger/spill_reader.hpp"
#include "logger/suspicion.hpp"

namespace postrider::logger {

/// Brings back what is on disk, oldest first, on a thread of its own: live events go before, a probe of one
/// event goes ahead, and the checkpoint follows each batch.
class Replayer {
 public:
  explicit Replayer(Outlet& outlet);
  ~Replayer() { stop(); }
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;

  void start();
  /// No new request after this; `stop` waits for the one that is under way.
  void ask_to_stop() POSTRIDER_EXCLUDES(mutex_);
  void stop() POSTRIDER_EXCLUDES(mutex_);
  /// The next cycle begins now.
  void wake() POSTRIDER_EXCLUDES(mutex_);

  /// One cycle, on this thread: until the disk is empty, or the receiver fails. Returns how many were
  /// delivered.
  std::uint64_t cycle();

 private:
  void run();
  [[nodiscard]] bool stopping() const POSTRIDER_EXCLUDES(mutex_);
  /// Waits until `events` more may be sent. False when it is to stop.
  [[nodiscard]] bool pace(std::size_t events) POSTRIDER_EXCLUDES(mutex_);
  /// Sends the items [begin, end) of the batch. Returns how many, from `begin` on, are done with; fewer than
  /// asked for when the receiver fails.
  std::size_t send(std::size_t begin, std::size_t end);
  /// The same for the first item alone, while another event can tell how the receiver is.
  std::size_t send_suspect();
  std::size_t settle_items(std::size_t begin, const SendResult& result);
  void settled(std::size_t index, const SendItem& item);
  void commit(std::size_t count);
  /// An event that can tell how the receiver is while the first one is suspected: the next.
  [[nodiscard]] std::optional<OutgoingEvent> find_witness();
  /// The first event fails again and again: is it the receiver, or the event? True when it is done with.
  [[nodiscard]] bool judge_first(const OutgoingEvent& witness);
  [[nodiscard]] bool receiver_is_well(const OutgoingEvent& witness);
  void bury_first();

  Outlet& outlet_;
  Clock& clock_;
  SpillReader reader_;
  SpillBatch batch_;
  std::vector<OutgoingEvent> outgoing_;
  SendResult last_;
  bool probing_ = true;
  std::size_t limit_ = ~std::size_t{0};  // events at once; smaller after a failure that may be an event's
  Suspicion suspicion_;                  // of the first event
  std::string witness_key_;              // of an event that was taken before its turn
  std::uint64_t delivered_ = 0;
  SteadyPoint paced_{};
  std::thread thread_;

  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool woken_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

}  // namespace postrider::logger
