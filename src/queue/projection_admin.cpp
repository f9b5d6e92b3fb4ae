// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "postrider/error.hpp"
#include "postrider/projection.hpp"
#include "queue/waiting.hpp"
#include "storage/projection_store.hpp"

namespace postrider {
namespace {

[[noreturn]] void throw_unknown(std::string_view name, int version) {
  std::string which = "there is no projection '" + std::string(name) + "'";
  if (version != 0) which += " with version " + std::to_string(version);
  throw Error(ErrorCode::invalid_argument, which, "nobody has run it yet, or it was forgotten",
              "see which there are: postrider projections list (ProjectionAdmin::list())");
}

void change(ProjectionStore& store, std::string_view name, int version, ProjectionChange what) {
  if (store.change(name, version, what) == ProjectionChanged::unknown) throw_unknown(name, version);
}

}  // namespace

ProjectionAdmin::ProjectionAdmin(Storage& storage, Clock* clock) noexcept
    : storage_(storage), clock_(clock != nullptr ? *clock : Clock::system()) {}

std::vector<ProjectionStatus> ProjectionAdmin::list() {
  return storage_.projection_store().list({});
}

ProjectionStatus ProjectionAdmin::status(std::string_view name, int version) {
  if (!name.empty()) {
    for (ProjectionStatus& one : storage_.projection_store().list(name)) {
      if (version == 0 ? one.live : one.version == version) return std::move(one);
    }
  }
  throw_unknown(name, version);
}

std::optional<int> ProjectionAdmin::live_version(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const ProjectionStatus& one : storage_.projection_store().list(name)) {
    if (one.live) return one.version;
  }
  return std::nullopt;
}

void ProjectionAdmin::pause(std::string_view name, int version) {
  change(storage_.projection_store(), name, status(name, version).version, ProjectionChange::pause);
}

void ProjectionAdmin::resume(std::string_view name, int version) {
  change(storage_.projection_store(), name, status(name, version).version, ProjectionChange::resume);
}

bool ProjectionAdmin::switch_to(std::string_view name, int version) {
  const ProjectionChanged changed =
      storage_.projection_store().change(name, version, ProjectionChange::switch_to);
  if (changed == ProjectionChanged::unknown) throw_unknown(name, version);
  return changed == ProjectionChanged::done;
}

void ProjectionAdmin::forget(std::string_view name, int version) {
  const ProjectionChanged changed =
      storage_.projection_store().change(name, version, ProjectionChange::forget);
  if (changed == ProjectionChanged::done) return;
  if (changed == ProjectionChanged::unknown) throw_unknown(name, version);
  const std::string what =
      "cannot forget version " + std::to_string(version) + " of projection '" + std::string(name) + "'";
  if (changed == ProjectionChanged::busy) {
    throw Error(ErrorCode::conflict, what, "a node runs it",
                "take it out of the program that runs it and wait for its lease to end, or pause it first");
  }
  throw Error(ErrorCode::invalid_argument, what, "it is live", "switch to another version first");
}

std::vector<SkippedEntry> ProjectionAdmin::skipped(std::string_view name, int version, LogSeq after,
                                                   std::size_t limit) {
  return storage_.projection_store().skipped(name, status(name, version).version, after, limit);
}

bool ProjectionAdmin::wait_until(std::string_view name, LogSeq seq, Duration timeout, int version) {
  const SteadyPoint end = clock_.steady_now() + std::min(timeout, longest_wait);
  Duration pause = first_pause;
  for (;;) {
    std::uint64_t before = 0;
    {
      const MutexLock lock(mutex_);
      before = wakes_;  // counted before the look: what moves during it must not be slept through
    }
    try {
      if (status(name, version).position >= seq) return true;
    } catch (const Error& error) {
      // A node that has just been started may not have stored it yet. At the end it is a mistake.
      if (error.code() != ErrorCode::invalid_argument || clock_.steady_now() >= end) throw;
    }
    const SteadyPoint next = std::min(end, clock_.steady_now() + pause);
    pause = std::min(pause * 2, longest_pause);
    const MutexLock lock(mutex_);
    while (wakes_ == before && clock_.steady_now() < next) clock_.wait_until(woken_, mutex_, next);
    if (wakes_ == before && clock_.steady_now() >= end) return false;
  }
}

void ProjectionAdmin::wake() noexcept {
  const MutexLock lock(mutex_);
  ++wakes_;
  woken_.notify_all();
}

}  // namespace postrider
