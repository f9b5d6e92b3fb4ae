// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <optional>

#include "postrider/event_store.hpp"
#include "storage/stream_store.hpp"

namespace postrider {

/// One page in memory, and how to get the next.
struct EventStream::State {
  /// Reads the first page. Throws Error(invalid_argument) for options that contradict each other.
  State(StreamStore& its_store, const EventStoreOptions& its_watch, Query its_query,
        const ReadOptions& options);

  std::optional<StoredEvent> next();

  StreamStore& store;
  const EventStoreOptions& watch;  // for its clock and its metrics, which are there
  const Query query;
  ReadRequest request;
  std::size_t page_size;
  std::size_t left;  // events that may still be given out
  ReadPage page;
  std::size_t place = 0;  // of the next one in the page
  Position head{};        // of the first page: the snapshot

 private:
  void read_page();
  void go_on();
};

}  // namespace postrider
