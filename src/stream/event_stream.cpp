// SPDX-License-Identifier: Apache-2.0
#include "stream/event_stream.hpp"

#include <algorithm>
#include <utility>

#include "core/option_check.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

std::int64_t number(Position position) {
  return static_cast<std::int64_t>(position);
}

/// The same part of the store, as positions from below to above.
ReadRequest request_of(const ReadOptions& options) {
  OptionCheck("ReadOptions").count("page_size", options.page_size, 1, 10'000);
  if (options.from.has_value() && options.after.has_value()) {
    throw Error(ErrorCode::invalid_argument, "cannot read", "both `from` and `after` are given",
                "`from` includes its position, `after` does not; choose one");
  }
  ReadRequest request{.backwards = options.backwards};
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (options.backwards) {
    if (options.from.has_value()) request.until = *options.from;
    if (options.after.has_value())
      request.until = Position{std::max<std::int64_t>(number(*options.after), 1) - 1};
    if (options.until.has_value())
      request.after = Position{std::max<std::int64_t>(number(*options.until), 1) - 1};
  } else {
    if (options.from.has_value())
      request.after = Position{std::max<std::int64_t>(number(*options.from), 1) - 1};
    if (options.after.has_value()) request.after = *options.after;
    request.until = options.until.value_or(Position{most});
  }
  return request;
}

}  // namespace

EventStream::State::State(StreamStore& its_store, const EventStoreOptions& its_watch, Query its_query,
                          const ReadOptions& options)
    : store(its_store),
      watch(its_watch),
      query(std::move(its_query)),
      request(request_of(options)),
      page_size(options.page_size),
      left(options.limit.value_or(std::numeric_limits<std::size_t>::max())) {
  request.query = &query;
  read_page();
  head = page.head;
  // Later pages belong to the same snapshot: positions come in commit order.
  request.until = std::min(request.until, head);
}

void EventStream::State::read_page() {
  request.limit = std::min(page_size, left);
  const SteadyPoint start = watch.clock->steady_now();
  page = store.read(request);
  watch.metrics->observe_stream_read(page.events.size(),
                                     std::chrono::duration_cast<Duration>(watch.clock->steady_now() - start));
  place = 0;
}

void EventStream::State::go_on() {
  if (request.backwards) {
    request.until = Position{number(page.seen) - 1};
  } else {
    request.after = page.seen;
  }
  read_page();
}

std::optional<StoredEvent> EventStream::State::next() {
  if (left == 0) return std::nullopt;
  while (place == page.events.size()) {
    if (!page.more) return std::nullopt;
    go_on();
  }
  --left;
  return std::move(page.events[place++]);
}

EventStream::EventStream(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
EventStream::EventStream(EventStream&&) noexcept = default;
EventStream& EventStream::operator=(EventStream&&) noexcept = default;
EventStream::~EventStream() = default;

std::optional<StoredEvent> EventStream::next() {
  return state_->next();
}

Position EventStream::head() const noexcept {
  return state_->head;
}

}  // namespace postrider
