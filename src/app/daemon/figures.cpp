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
/// Without an answer the database is taken for gone.
constexpr Duration longest_silence = 5 * pause;

}  // namespace

FigureBoard::FigureBoard(Storage& storage, const Identifier& schema, metrics::PrometheusMetrics& metrics,
                         Clock& clock)
    : storage_(storage), schema_(schema), metrics_(metrics), clock_(clock), task_(pause, clock, [this] {
        look_if_due();
      }) {}

void FigureBoard::start() {
  look();
  task_.start();
}

FigureBoard::Asking::Asking(FigureBoard& board, Duration patience) : board_(board) {
  const MutexLock lock(board_.mutex_);
  board_.asked_at_ = board_.clock_.steady_now();
  board_.patience_ = patience;
}

FigureBoard::Asking::~Asking() {
  const MutexLock lock(board_.mutex_);
  board_.asked_at_.reset();
}

std::shared_ptr<const Figures> FigureBoard::latest() const {
  const SteadyPoint now = clock_.steady_now();
  const MutexLock lock(mutex_);
  const bool silent = asked_at_ && now - *asked_at_ >= patience_;
  const bool known = latest_ != nullptr && !latest_->database_up && (!blocker_ || latest_->blocker);
  if (!silent || known) return latest_;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - *asked_at_).count();
  return std::make_shared<const Figures>(
      Figures{.at = clock_.now(),
              .trouble = "it has not answered for " + std::to_string(seconds) + " s",
              .blocker = blocker_});
}

bool FigureBoard::is_up() const {
  const std::shared_ptr<const Figures> figures = latest();
  return figures != nullptr && figures->database_up;
}

void FigureBoard::publish(Figures figures) {
  auto shared = std::make_shared<const Figures>(std::move(figures));
  const MutexLock lock(mutex_);
  latest_ = std::move(shared);
}

void FigureBoard::look_if_due() noexcept {
  if (clock_.steady_now() < next_look_) {
    if (!ping()) next_look_ = {};
    return;
  }
  look();
  const SteadyPoint end = clock_.steady_now();
  // A database that is away costs nothing to look for, and everybody waits to hear that it is back.
  next_look_ =
      is_up() ? end + std::min<SteadyPoint::duration>(last_look_took_ * rest_factor, longest_rest) : end;
}

bool FigureBoard::ping() noexcept {
  const Asking asking(*this, longest_silence);
  try {
    try {
      storage_.ping();
      return true;
    } catch (const std::exception& error) {
      publish({.at = clock_.now(), .trouble = what_of(error)});
    }
  } catch (const std::exception&) {
    // Without memory for it, the last figures stay.
  }
  return false;
}

std::optional<Blocker> FigureBoard::look_for_blocker() {
  std::optional<Blocker> blocker = find_blocker(storage_, schema_);
  const MutexLock lock(mutex_);
  blocker_ = blocker;
  return blocker;
}

void FigureBoard::look() noexcept {
  if (!ping()) return;  // it sees more than reading does: a file that was removed can still be read
  // Large tables take their time: this is no silence when the last look took as long.
  const Asking asking(*this,
                      std::max(longest_silence, std::chrono::duration_cast<Duration>(2 * last_look_took_)));
  const SteadyPoint begin = clock_.steady_now();
  try {
    Figures figures{.at = clock_.now()};
    try {
      // First: what is asked below may have to wait for it.
      figures.blocker = look_for_blocker();
      figures.outbox = OutboxAdmin(storage_).counts();
      figures.queue = QueueAdmin(storage_).counts();
      figures.pairs = RelayAdmin(storage_).list();
      figures.leaders = RelayAdmin(storage_).leaders();
      figures.head = storage_.stream_store().head();
      figures.database_up = true;
    } catch (const std::exception& error) {
      figures.trouble = what_of(error);
      try {
        figures.blocker = look_for_blocker();
      } catch (const std::exception&) {
        // It is away altogether.
      }
    }
    // One that was away has failed writes, too, and is back: only what goes on is told.
    const std::uint64_t failed = metrics_.failed_writes();
    const bool fails = failed > std::exchange(failed_writes_, failed);
    figures.refuses_writes = figures.database_up && fails && writes_failed_;
    writes_failed_ = fails;
    if (figures.database_up) {
      last_look_took_ = clock_.steady_now() - begin;
      const QueueCounts& queue = figures.queue;
      metrics_.record_outbox(figures.outbox);
      metrics_.record_queue(queue.pending, queue.delayed, queue.processing, queue.abandoned,
                            queue.quarantined, queue.oldest_pending);
      metrics_.record_pairs(figures.pairs);
    }
    publish(std::move(figures));
  } catch (const std::exception&) {
    // Without memory for it, the last figures stay.
  }
}

}  // namespace postrider::daemon
