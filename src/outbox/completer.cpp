// SPDX-License-Identifier: Apache-2.0
#include "outbox/completer.hpp"

#include <algorithm>
#include <utility>

#include "core/failpoint.hpp"

namespace postrider {

Completer::Completer(OutboxStore& store, const CompleterOptions& options, OnFlushed on_flushed)
    : store_(store),
      clock_(*options.clock),
      metrics_(*options.metrics),
      writer_(
          {.batch_size = options.batch_size,
           .linger = options.linger,
           .queue_capacity = options.queue_capacity,
           .stop_timeout = options.stop_timeout,
           .clock = options.clock,
           .log = options.log},
          [this](std::span<const FinishedEvent> batch) { unreported_ += write(batch); },
          [this, flushed = std::move(on_flushed)](std::span<const FinishedEvent> batch, bool /*written*/) {
            flushed(batch);
            // Last: whoever sees the figure may rely on the events being over in this process, too.
            report(std::exchange(unreported_, {}));
          },
          [this] { metrics_.increment_flush_failures(); }) {}

void Completer::write_now(std::span<const FinishedEvent> batch) {
  report(write(batch));
}

Completer::Written Completer::write(std::span<const FinishedEvent> batch) {
  std::vector<Completion> results;
  results.reserve(batch.size());
  for (const FinishedEvent& one : batch) results.push_back(one.completion);
  const SteadyPoint begin = clock_.steady_now();
  failpoint("outbox.complete.before");
  const std::size_t changed = store_.complete(results);
  failpoint("outbox.complete.after");
  return {batch.size(), batch.size() - std::min(changed, batch.size()),
          std::chrono::duration_cast<Duration>(clock_.steady_now() - begin)};
}

void Completer::report(const Written& written) {
  if (written.events == 0) return;
  metrics_.observe_flush(written.events, written.took);
  if (written.stale > 0) metrics_.increment_stale_completions(written.stale);
}

}  // namespace postrider
