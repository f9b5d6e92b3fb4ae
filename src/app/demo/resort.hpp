// SPDX-License-Identifier: Apache-2.0
// The pet resort of the fourth chapter: an application that logs business events, in a process of its own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "app/demo/stage.hpp"
#include "postrider/async_logger.hpp"

namespace postrider::demo {

/// The pet resort's counters, in a mapped file: they survive `kill -9`, and the chapter reads them while it
/// runs. What the resort counts goes on over all of its lives.
struct ResortBoard {
  static constexpr std::uint64_t events_of_a_booking = 5;

  // What the chapter wants.
  std::atomic<std::uint64_t> port;
  std::atomic<std::uint64_t> wanted;  ///< bookings, of all lives together
  std::atomic<bool> aggressive;       ///< queue-capacity 10, circuit-breaker-threshold 2

  // What the resort has done.
  std::atomic<std::uint64_t> lives;
  std::atomic<std::uint64_t> made;  ///< bookings whose events are all logged
  std::atomic<std::uint64_t> sent;  ///< replayed ones too
  std::atomic<std::uint64_t> spilled;
  std::atomic<std::uint64_t> replayed;
  std::atomic<std::uint64_t> lost;  ///< dead letters too
  std::atomic<std::uint64_t> in_memory;
  std::atomic<std::uint64_t> on_disk;
  std::atomic<bool> circuit_open;

  /// Maps the file, creating it at need. Stays mapped until the process ends.
  [[nodiscard]] static ResortBoard& map(const Place& place);
};

/// A guest comes, stays and leaves: five events with one correlation.
void book(AsyncEventLogger& logger, std::uint64_t number);
/// A logger to the API at that port, with shorter pauses than by default: nobody wants to watch a breaker for
/// half a minute. Null when this build has no HTTP client.
[[nodiscard]] std::unique_ptr<AsyncEventLogger> resort_logger(const std::string& base_url,
                                                              const std::filesystem::path& spillover,
                                                              bool aggressive);

}  // namespace postrider::demo
