// SPDX-License-Identifier: Apache-2.0
// The demo shop: one program, several roles. In the first chapter a *node* takes orders and delivers their
// events; the *manager* starts it, kills it, starts it again, shows the board and checks the books. In the
// second one *workers* take orders from the queue, in the third a *relay* publishes what happens to wallets,
// in the fourth a *resort* logs to an Event Log API.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace shop {

/// Where a shop lives: its database and the two books that outlive any crash.
struct Place {
  std::filesystem::path folder;

  [[nodiscard]] std::string url() const { return "sqlite:" + (folder / "shop.db").string(); }
  /// One line per mail that left the house: event id and order number.
  [[nodiscard]] std::filesystem::path mails() const { return folder / "mails.txt"; }
  /// One line per order that was rolled back: event id and order number.
  [[nodiscard]] std::filesystem::path cancelled() const { return folder / "cancelled.txt"; }
  [[nodiscard]] std::filesystem::path counters() const { return folder / "counters"; }
};

/// Counters in a mapped file: they survive `kill -9` of the node, and the manager reads them while it runs.
struct Counters {
  static constexpr std::size_t buckets = 24;

  std::atomic<std::uint64_t> published;
  std::atomic<std::uint64_t> rolled_back;
  std::atomic<std::uint64_t> delivered;
  std::atomic<std::uint64_t> retried;
  std::atomic<std::uint64_t> next_order;
  /// Time from placing the order (before its transaction commits) to the listener, by powers of two of a
  /// microsecond.
  std::array<std::atomic<std::uint64_t>, buckets> latency;

  /// Maps the file, creating it at need. Stays mapped until the process ends.
  [[nodiscard]] static Counters& map(const Place& place);
  void observe(std::chrono::microseconds latency_of_one) noexcept;
  /// The middle of the latencies seen so far, in microseconds.
  [[nodiscard]] double median_latency() const noexcept;
};

/// Takes orders until told to stop (SIGTERM), delivering as it goes; with `only_deliver` just works off what
/// is left. Returns the process's exit code.
int run_node(const Place& place, bool only_deliver);

/// What a program returns that was told to leave (Ctrl-C).
inline constexpr int interrupted_code = 130;

/// The whole show. Returns 0 when the books balance.
int run_manager(const Place& place, std::chrono::seconds length, const std::string& program);

/// After Ctrl-C and the like, once `run_manager` was called.
[[nodiscard]] bool told_to_leave() noexcept;

/// The second chapter: orders through the queue and three handlers, one of which takes its process down.
/// Returns 0 when every order is in the log once.
int run_queue_chapter(const Place& place, const std::string& program);
/// Handles orders until told to stop (SIGTERM).
int run_queue_worker(const Place& place);

/// The third chapter: wallets in the event store and a relay with two publishers, one of which fails and is
/// resumed; the node that leads is killed. Returns 0 when the money adds up and every event was published.
int run_wallet_chapter(const Place& place, const std::string& program);
/// Relays until told to stop (SIGTERM).
int run_relay_node(const Place& place);

/// The fourth chapter: a pet resort logs to an Event Log API that is killed and started again; so is the
/// resort. Returns 0 when each event is in the API's table once.
int run_resort_chapter(const Place& place, const std::string& program);
/// Takes bookings and logs them until told to stop (SIGTERM).
int run_resort(const Place& place);

/// What the books say at the end.
struct BalanceSheet {
  std::uint64_t orders = 0;     ///< committed, from the shop's own table
  std::uint64_t cancelled = 0;  ///< rolled back
  std::uint64_t delivered = 0;  ///< distinct events in the mail book
  std::uint64_t repeated = 0;   ///< mails sent again with the same event id
  std::uint64_t dead = 0;
  std::uint64_t pending = 0;
  std::uint64_t lost = 0;     ///< ordered, yet neither mailed nor dead nor pending
  std::uint64_t phantom = 0;  ///< mailed, yet never ordered

  [[nodiscard]] bool balanced() const noexcept { return lost == 0 && phantom == 0 && pending == 0; }
};
[[nodiscard]] BalanceSheet check_books(const Place& place);

}  // namespace shop
