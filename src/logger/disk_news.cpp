// SPDX-License-Identifier: Apache-2.0
#include "logger/disk_news.hpp"

#include <system_error>
#include <utility>

#include "core/wording.hpp"

namespace postrider::logger {

void DiskNews::failed(DiskTask task, std::string_view what, int error, std::uint64_t times) {
  State& failing = state(task);
  const SteadyPoint now = clock_.steady_now();
  {
    const MutexLock lock(mutex_);
    if (!failing.failing.exchange(true)) failing.since = now;
    failing.what = what;
    failing.error = -error;
  }
  tell(failing, failing.news.add(times, now));
}

void DiskNews::recovered(DiskTask task) {
  std::string text;
  {
    const MutexLock lock(mutex_);
    State& well = state(task);
    // Of what nobody was told, nobody needs to hear that it is over.
    if (!well.failing.exchange(false) || !std::exchange(well.told, false)) return;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(clock_.steady_now() - well.since);
    text = "postrider: spill folder: it works again, after " + text_of(seconds) + ": " + well.what;
  }
  log_(LogLevel::info, text);
}

void DiskNews::tell_held_back(bool all) {
  const SteadyPoint now = clock_.steady_now();
  for (State& each : states_) tell(each, all ? each.news.rest() : each.news.due(now));
}

void DiskNews::tell(State& failing, std::uint64_t times) {
  if (times == 0) return;
  std::string text = "postrider: spill folder: ";
  {
    const MutexLock lock(mutex_);
    text += failing.what + ": " + std::generic_category().message(failing.error);
    if (times > 1) text += " (" + std::to_string(times) + " since the last such line)";
    if (failing.failing) {
      failing.told = true;
    } else {
      text += "; it works again";
    }
  }
  log_(LogLevel::error, text);
}

}  // namespace postrider::logger
