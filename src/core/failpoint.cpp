// SPDX-License-Identifier: Apache-2.0
#include "core/failpoint.hpp"

#if defined(POSTRIDER_FAILPOINTS)

#include <csignal>
#include <cstdint>
#include <cstdlib>

#include <charconv>
#include <map>
#include <set>
#include <utility>

#include <unistd.h>

#include "postrider/detail/sync.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

struct Planned {
  enum class Kind { kill, raise, hang };
  Kind kind;
  std::uint64_t remaining;  // passes until it strikes; 0 afterwards
};

using Plan = std::map<std::string, Planned, std::less<>>;

struct Registry {
  Mutex mutex;
  std::set<std::string, std::less<>> seen POSTRIDER_GUARDED_BY(mutex);
  std::map<std::string, std::function<void()>, std::less<>> actions POSTRIDER_GUARDED_BY(mutex);
  Plan planned POSTRIDER_GUARDED_BY(mutex);
  bool environment_read POSTRIDER_GUARDED_BY(mutex) = false;
};

Registry& registry() {
  static Registry* const points = new Registry;  // never destroyed: passed by threads that outlive main
  return *points;
}

[[noreturn]] void refuse_plan(std::string_view part, std::string_view why) {
  throw Error(ErrorCode::invalid_argument, "failpoint '" + std::string(part) + "' is refused", why,
              "write POSTRIDER_FAILPOINT=\"name=kill\" or \"name=throw@3\", several with ';' between them");
}

std::pair<std::string, Planned> parse_one(std::string_view part) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos || equals == 0) refuse_plan(part, "it has no name and action");
  const std::string_view name = part.substr(0, equals);
  std::string_view action = part.substr(equals + 1);
  std::uint64_t pass = 1;
  if (const std::size_t at = action.find('@'); at != std::string_view::npos) {
    const std::string_view digits = action.substr(at + 1);
    const char* const end = digits.data() + digits.size();
    const auto [stopped, error] = std::from_chars(digits.data(), end, pass);
    if (error != std::errc{} || stopped != end || pass == 0)
      refuse_plan(part, "behind '@' stands no count from 1 on");
    action = action.substr(0, at);
  }
  if (action == "kill") return {std::string(name), {Planned::Kind::kill, pass}};
  if (action == "throw") return {std::string(name), {Planned::Kind::raise, pass}};
  if (action == "hang") return {std::string(name), {Planned::Kind::hang, pass}};
  refuse_plan(part, "the action is neither kill nor throw nor hang");
}

Plan parse(std::string_view text) {
  Plan parsed;
  while (!text.empty()) {
    const std::size_t end = text.find(';');
    const std::string_view part = text.substr(0, end);
    if (!part.empty()) {
      auto [name, planned] = parse_one(part);
      parsed.insert_or_assign(std::move(name), planned);
    }
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return parsed;
}

void add(Registry& points, const Plan& plan) POSTRIDER_REQUIRES(points.mutex) {
  for (const auto& [name, planned] : plan) points.planned.insert_or_assign(name, planned);
}

/// A plan that cannot be read throws at every pass: a crash test must not go on as if it had killed
/// something.
void read_environment(Registry& points) POSTRIDER_REQUIRES(points.mutex) {
  if (points.environment_read) return;
  if (const char* const text = std::getenv("POSTRIDER_FAILPOINT")) add(points, parse(text));
  points.environment_read = true;
}

}  // namespace

void failpoint(std::string_view name) {
  Registry& points = registry();
  std::function<void()> action;
  bool raise = false;
  bool hang = false;
  {
    const MutexLock lock(points.mutex);
    read_environment(points);
    if (points.seen.find(name) == points.seen.end()) points.seen.emplace(name);
    if (const auto found = points.planned.find(name);
        found != points.planned.end() && found->second.remaining > 0) {
      if (--found->second.remaining == 0) {
        if (found->second.kind == Planned::Kind::kill) {
          ::kill(::getpid(), SIGKILL);
          for (;;) ::pause();  // the signal may take a moment, and nothing may happen in it
        }
        (found->second.kind == Planned::Kind::hang ? hang : raise) = true;
      }
    }
    if (const auto found = points.actions.find(name); found != points.actions.end()) action = found->second;
  }
  if (raise) {
    throw Error(ErrorCode::unavailable, {.retryable = true}, "failpoint " + std::string(name),
                "it was told to throw");
  }
  if (hang) {
    for (;;) ::pause();
  }
  // Without the lock: the action may wait for another thread, which passes failpoints too.
  if (action) action();
}

namespace failpoints {

void plan(std::string_view text) {
  const Plan parsed = parse(text);
  Registry& points = registry();
  const MutexLock lock(points.mutex);
  add(points, parsed);
}

void set(std::string_view name, std::function<void()> action) {
  Registry& points = registry();
  const MutexLock lock(points.mutex);
  if (action) {
    points.actions.insert_or_assign(std::string(name), std::move(action));
  } else if (const auto found = points.actions.find(name); found != points.actions.end()) {
    points.actions.erase(found);
  }
}

void clear() {
  Registry& points = registry();
  const MutexLock lock(points.mutex);
  points.actions.clear();
  points.planned.clear();
}

std::vector<std::string> seen() {
  Registry& points = registry();
  const MutexLock lock(points.mutex);
  return {points.seen.begin(), points.seen.end()};
}

}  // namespace failpoints
}  // namespace postrider

#endif
