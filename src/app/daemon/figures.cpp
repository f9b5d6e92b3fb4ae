// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/figures.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/what_of.hpp"
#include "storage/stream_store.hpp"

namespace postrider::daemon {
namespace {

constexpr Duration pause = std::chrono::seconds{1};
constexpr int rest_factor = 20;
constexpr Duration longest_rest = std::chrono::minutes{1};

}  // namespace

FigureBoard::FigureBoard(Storage& storage, metrics::PrometheusMetrics& metrics, Clock& clock)
    : storage_(storage), metrics_(metrics), clock_(clock), task_(pause, clock, [this] { look_if_due(); }) {}

void FigureBoard::start() {
  look();
  task_.start();
}

std::shared_ptr<const Figures> FigureBoard::latest() const {
  const MutexLock lock(mutex_);
  return latest_;
}

void FigureBoard::look_if_due() noexcept {
  if (clock_.steady_now() < next_look_) return;
  const SteadyPoint begin = clock_.steady_now();
  look();
  const SteadyPoint end = clock_.steady_now();
  const std::shared_ptr<const Figures> figures = latest();
  // A database that is away costs nothing to look for, and everybody waits to hear that it is back.
  const bool up = figures != nullptr && figures->database_up;
  next_look_ = up ? end + std::min<SteadyPoint::duration>((end - begin) * rest_factor, longest_rest) : end;
}

void FigureBoard::look() noexcept {
  try {
    auto figures = std::make_shared<Figures>();
    figures->at = clock_.now();
    try {
      figures->outbox = OutboxAdmin(storage_).counts();
      figures->queue = QueueAdmin(storage_).counts();
      figures->pairs = RelayAdmin(storage_).list();
      figures->leaders = RelayAdmin(storage_).leaders();
      figures->head = storage_.stream_store().head();
      figures->blocker = find_blocker(storage_);
      figures->database_up = true;
    } catch (const std::exception& error) {
      figures->trouble = what_of(error);
    }
    metrics_.record_database(figures->database_up);
    if (figures->database_up) {
      const QueueCounts& queue = figures->queue;
      metrics_.record_outbox(figures->outbox);
      metrics_.record_queue(queue.pending, queue.delayed, queue.processing, queue.abandoned,
                            queue.quarantined, queue.oldest_pending);
      for (const PairStatus& pair : figures->pairs) {
        metrics_.record_pair(pair.name.topic, pair.name.publisher, pair.lag_events, pair.lag_time,
                             pair.state == PairState::active, pair.dead_letters);
      }
    }
    const MutexLock lock(mutex_);
    latest_ = std::move(figures);
  } catch (const std::exception&) {
    // Without memory for it, the last figures stay.
  }
}

}  // namespace postrider::daemon
