// SPDX-License-Identifier: Apache-2.0
// The demo: one process runs the daemon, with dashboard and all, and plays the chapters on its database. Who
// is killed on stage is an *actor*, a process of its own: the shop that takes orders, the workers of the
// queue, the first of two relay nodes, the pet resort and the Event Log API that it logs to.
#pragma once

#include <atomic>
#include <boost/json/object.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "app/cli/interrupts.hpp"

namespace postrider::demo {

/// Where a demo lives: its database, and the books that outlive any crash.
struct Place {
  std::filesystem::path folder;

  [[nodiscard]] std::string url() const { return "sqlite:" + (folder / "demo.db").string(); }
  /// One line per mail that left the house: the event's id.
  [[nodiscard]] std::filesystem::path mails() const { return folder / "mails.txt"; }
  /// One line per order that was rolled back: the event's id.
  [[nodiscard]] std::filesystem::path cancelled() const { return folder / "cancelled.txt"; }
  /// One line per event of the wallets: its position.
  [[nodiscard]] std::filesystem::path ledger() const { return folder / "ledger.txt"; }
  /// While this file is there, the newsletter's printer refuses everything.
  [[nodiscard]] std::filesystem::path paper_jam() const { return folder / "paper-jam"; }
  /// What the pet resort's logger puts aside, in its chapter and behind the last one.
  [[nodiscard]] std::filesystem::path spillover() const { return folder / "spillover"; }
  [[nodiscard]] std::filesystem::path encore_spillover() const { return folder / "encore-spillover"; }
};

/// What chapters need. Made before the process has other threads; used by one, but for `left`.
class Stage {
 public:
  Stage(Place place, std::string program, std::FILE* out, bool terminal, const cli::Interrupts& interrupts)
      : place_(std::move(place)),
        program_(std::move(program)),
        out_(out),
        terminal_(terminal),
        interrupts_(interrupts) {}

  [[nodiscard]] const Place& place() const noexcept { return place_; }
  [[nodiscard]] const std::string& program() const noexcept { return program_; }  ///< this very program
  [[nodiscard]] std::FILE* out() const noexcept { return out_; }
  /// Whether `out` is one, so that a line may be drawn over itself.
  [[nodiscard]] bool terminal() const noexcept { return terminal_; }

  /// Ctrl-C, or a reader who has gone: leave, and tidy up.
  [[nodiscard]] bool left() const noexcept { return left_; }
  /// Shows what was written, and waits. False when it is time to leave.
  bool pause(std::chrono::milliseconds time) {
    if (std::fflush(out_) != 0 || interrupts_.wait_for(time)) left_ = true;
    return !left_;
  }
  /// Asks until it is so. False when that takes too long, or when it is time to leave.
  template <class Condition>
  bool await(const Condition& condition, std::chrono::seconds patience = std::chrono::seconds{20}) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline || !pause(std::chrono::milliseconds{20})) return false;
    }
    return true;
  }

 private:
  Place place_;
  std::string program_;
  std::FILE* out_;
  bool terminal_;
  const cli::Interrupts& interrupts_;
  std::atomic<bool> left_{false};
};

/// What a chapter has shown.
struct Result {
  bool good = false;
  std::string story{};  ///< of the summary, in a line
  boost::json::object figures{};
};

class Backstage;

/// Orders in a transaction with their events; the shop dies, the mail server goes away, some letters are
/// dead.
[[nodiscard]] Result play_outbox(Stage& stage, Backstage& backstage, std::chrono::seconds length);
/// Orders through three handlers; one takes its worker down once, one always, and is put into quarantine.
[[nodiscard]] Result play_queue(Stage& stage);
/// Decisions that conflict, a publisher that fails, one that is paused, and a leader that dies.
[[nodiscard]] Result play_wallets(Stage& stage, Backstage& backstage);
/// A pet resort logs to an Event Log API; both are killed and started again.
[[nodiscard]] Result play_resort(Stage& stage);

/// What the actors do in their processes, until told to stop. They return the exit code.
int run_shop(const Place& place);
int run_worker(const Place& place);
int run_relay_node(const Place& place);
int run_resort(const Place& place);

}  // namespace postrider::demo
