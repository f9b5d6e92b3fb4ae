// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/balance.hpp"
#include "support/child_process.hpp"
#include "support/shop.hpp"

namespace postrider::test {

/// One database and the processes that live and die on it, one after the other or beside each other, with
/// their notes.
class CrashRun {
 public:
  using Options = std::vector<std::string>;

  /// `program` is the path of outbox_child.
  CrashRun(BackendKind kind, std::string program, std::string url = {});

  /// Starts the next process. Its generation is `generations()`.
  [[nodiscard]] std::unique_ptr<ChildProcess> start(const Options& options,
                                                    const ChildProcess::Environment& environment = {});
  [[nodiscard]] int generations() const noexcept { return generations_; }
  /// That process did not end by itself: what it had in flight may come again.
  void was_killed(int generation) { killed_.insert(generation); }
  [[nodiscard]] std::size_t kills() const noexcept { return killed_.size(); }

  /// Runs a process that delivers until nothing is pending. Returns what it said at the end, or a complaint.
  [[nodiscard]] std::string drain(const Options& options = {});
  /// Adds up. Call it while no process runs.
  [[nodiscard]] Balance balance(std::size_t held_at_most) const;

  [[nodiscard]] CrashDatabase& database() noexcept { return database_; }
  [[nodiscard]] std::string notes_path() const { return database_.folder() + "/notes"; }
  [[nodiscard]] std::vector<Note> notes() const { return read_notes(notes_path()); }

 private:
  CrashDatabase database_;
  std::string program_;
  int generations_ = 0;
  std::set<int> killed_;
};

/// For random tests: from POSTRIDER_SEED when it is set, so that a run can be repeated.
[[nodiscard]] unsigned chosen_seed();
/// How often, from the environment when it is set there.
[[nodiscard]] int chosen_count(const char* variable, int otherwise);

}  // namespace postrider::test
