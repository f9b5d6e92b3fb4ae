// SPDX-License-Identifier: Apache-2.0
#include "logger/replayer.hpp"

#include <algorithm>

#include "core/failpoint.hpp"
#include "core/wording.hpp"

namespace postrider::logger {
namespace {

constexpr std::size_t batch_bytes = 1 << 20;

}  // namespace

Replayer::Replayer(Outlet& outlet) : outlet_(outlet), clock_(*outlet.options.clock), reader_(*outlet.store) {}

void Replayer::start() {
  if (outlet_.store->has_files()) wake();  // of the process before: nobody has to wait for an interval
  thread_ = std::thread([this] { run(); });
}

void Replayer::ask_to_stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
}

void Replayer::stop() {
  ask_to_stop();
  if (thread_.joinable()) thread_.join();
}

void Replayer::wake() {
  {
    const MutexLock lock(mutex_);
    woken_ = true;
  }
  wake_.notify_all();
}

bool Replayer::stopping() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

void Replayer::run() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      const SteadyPoint until = clock_.steady_now() + outlet_.options.replay_interval;
      while (!stopping_ && !woken_ && clock_.steady_now() < until) clock_.wait_until(wake_, mutex_, until);
      if (stopping_) return;
      woken_ = false;
    }
    cycle();
    failpoint("logger.replay.cycled");
  }
}

std::uint64_t Replayer::cycle() {
  const std::uint64_t before = delivered_;
  outlet_.store->look_after_files();
  outlet_.writer->tell_removed();
  probing_ = probing_ || !outlet_.gate.is_closed();
  const std::size_t full = outlet_.options.replay_batch_size;
  while (!stopping() && outlet_.store->has_files()) {
    // Live events first.
    constexpr Duration patience = std::chrono::seconds{1};
    if (!outlet_.queue.await_low(clock_.steady_now() + patience)) break;
    const std::size_t size = probing_ ? 1 : std::min(full, limit_);
    const bool suspected = probing_ && suspicion_.any();
    const bool any = reader_.read(batch_, suspected ? 2 : size, batch_bytes);
    outlet_.writer->tell_removed();
    if (!any) break;
    if (batch_.items.empty()) {
      commit(0);
      continue;
    }
    if (!witness_key_.empty() && batch_.items.front().key == witness_key_) {
      witness_key_.clear();
      settled(0, {});
      commit(1);
      continue;
    }
    outgoing_.clear();
    for (const SpillBatch::Item& item : batch_.items) outgoing_.push_back({item.members, item.key});
    const std::size_t wanted = probing_ ? 1 : batch_.items.size();
    if (!pace(wanted)) break;
    const auto witness = suspected ? find_witness() : std::nullopt;
    if (!outlet_.gate.enter()) break;
    // Without another event on disk, those that are sent meanwhile tell that the receiver is well.
    const bool vouched = suspected && !witness && suspicion_.others_taken(outlet_.gate.successes());
    const std::size_t done = witness || vouched ? send_suspect() : send(0, wanted);
    if (done < wanted) {
      if (done > 0) commit(done);
      if (blames_event(last_.status) && wanted > 1) {
        // One of them may be the cause: nearer to it with half as many. The gate stops this if it is not so.
        limit_ = wanted / 2;
        suspicion_.clear();
        continue;
      }
      probing_ = true;
      if (done == 0) {
        suspicion_.failed(last_.status, vouched, outlet_.gate.successes());
      } else {
        suspicion_.clear();
      }
      if (suspicion_.proven()) {
        bury_first();
        continue;
      }
      if (witness && suspicion_.any() && judge_first(*witness)) continue;
      break;
    }
    commit(done);
    suspicion_.clear();
    limit_ = std::min(full, wanted * 2);
    probing_ = false;
  }
  return delivered_ - before;
}

std::optional<OutgoingEvent> Replayer::find_witness() {
  if (batch_.items.size() > 1) return outgoing_[1];
  return reader_.first_behind();
}

bool Replayer::receiver_is_well(const OutgoingEvent& witness) {
  if (stopping() || !outlet_.gate.enter()) return false;
  const SendVerdict verdict = verdict_of_one(outlet_.send({&witness, 1}));
  // It will not be sent again when its turn comes.
  if (verdict == SendVerdict::delivered) witness_key_ = witness.key;
  return verdict != SendVerdict::transient && verdict != SendVerdict::throttled;
}

/// An event is buried when the receiver takes another one after four failures of this one, and then fails
/// three more times with it. While the circuit is not closed, the other one is asked at once: all wait for
/// the receiver, and should not wait for a single event.
bool Replayer::judge_first(const OutgoingEvent& witness) {
  const bool convicted = suspicion_.strong();
  if (!convicted && outlet_.gate.is_closed()) return false;
  const int status = last_.status;
  if (!receiver_is_well(witness) || !convicted) return false;
  for (int tries = 0; tries < Suspicion::patience; ++tries) {
    if (stopping() || !outlet_.gate.enter()) return false;
    if (send_suspect() == 1) {  // taken, or refused, after all
      commit(1);
      suspicion_.clear();
      return true;
    }
    if (last_.status != status) return false;
  }
  bury_first();
  return true;
}

void Replayer::bury_first() {
  settled(0, {SendVerdict::rejected, last_.status, "failed again and again: " + last_.reason});
  commit(1);
  suspicion_.clear();
}

std::size_t Replayer::send_suspect() {
  last_ = outlet_.send_suspect(outgoing_.front());
  if (!last_.items.empty()) return settle_items(0, last_);
  if (last_.verdict == SendVerdict::transient || last_.verdict == SendVerdict::throttled) return 0;
  settled(0, {last_.verdict, last_.status, last_.reason});
  return 1;
}

std::size_t Replayer::send(std::size_t begin, std::size_t end) {
  std::vector<std::pair<std::size_t, std::size_t>> parts{{begin, end}};
  std::size_t done = 0;  // the parts come in order
  bool entered = true;
  while (!parts.empty()) {
    const auto [from, to] = parts.back();
    parts.pop_back();
    if (!entered && (stopping() || !outlet_.gate.enter())) return done;
    entered = false;
    last_ = outlet_.send(std::span(outgoing_).subspan(from, to - from));
    if (!last_.items.empty()) {
      const std::size_t settled_items = settle_items(from, last_);
      done += settled_items;
      if (settled_items < to - from) return done;
      continue;
    }
    switch (last_.verdict) {
      case SendVerdict::delivered:
        for (std::size_t i = from; i < to; ++i) settled(i, {});
        break;
      case SendVerdict::rejected:
      case SendVerdict::too_large:
        if (to - from > 1) {
          const std::size_t middle = from + (to - from) / 2;
          parts.emplace_back(middle, to);
          parts.emplace_back(from, middle);
          continue;
        }
        settled(from, {last_.verdict, last_.status, last_.reason});
        break;
      case SendVerdict::transient:
      case SendVerdict::throttled:
        return done;
    }
    done += to - from;
  }
  return done;
}

/// Up to the first that is to be tried again. Those behind it come again with it: they keep their keys.
std::size_t Replayer::settle_items(std::size_t begin, const SendResult& result) {
  std::size_t done = 0;
  for (const SendItem& item : result.items) {
    if (item.verdict == SendVerdict::transient || item.verdict == SendVerdict::throttled) {
      last_.status = item.status;
      last_.reason = item.reason;
      break;
    }
    settled(begin + done, item);
    ++done;
  }
  return done;
}

void Replayer::settled(std::size_t index, const SendItem& item) {
  const SpillBatch::Item& event = batch_.items[index];
  if (event.foreign) outlet_.ledger.adopted(1);
  if (item.verdict == SendVerdict::delivered) {
    ++delivered_;
    outlet_.ledger.replayed(1);
  } else if (outlet_.bury(event.members, item)) {
    outlet_.ledger.replayed_dead();
  } else {
    outlet_.ledger.lost_from_disk(event.members, LossReason::rejected);
  }
}

void Replayer::commit(std::size_t count) {
  // Into the books first: no event is ever in none.
  outlet_.ledger.lost_unseen(reader_.preview(batch_, count).lost, LossReason::corrupted);
  const SpillReader::Committed committed = reader_.commit(batch_, count);
  outlet_.ledger.quarantined(committed.quarantined);
  if (committed.lost + committed.quarantined + committed.discarded > 0) {
    outlet_.options.log(
        LogLevel::error,
        "postrider: the spill files are damaged: " + counted(committed.lost, "event") + " lost, " +
            counted(committed.quarantined, "line") + " put into the quarantine" +
            (committed.discarded == 0 ? std::string()
                                      : "; for " + counted(committed.discarded, "line") +
                                            " there was no room in it: it is full, or cannot be written"));
  }
  outlet_.writer->room_made();
  failpoint("logger.replay.committed");
}

bool Replayer::pace(std::size_t events) {
  const std::uint64_t rate = outlet_.options.replay_rate;
  if (rate == 0) return true;
  const MutexLock lock(mutex_);
  paced_ = std::max(paced_, clock_.steady_now());
  while (!stopping_ && clock_.steady_now() < paced_) clock_.wait_until(wake_, mutex_, paced_);
  paced_ += Duration{static_cast<std::int64_t>(events * 1'000'000 / rate)};
  return !stopping_;
}

}  // namespace postrider::logger
