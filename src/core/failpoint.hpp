// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace postrider {

/// Marks a place between two durable steps: `failpoint("outbox.insert.before_commit")`. Crash tests kill the
/// process there, others make it throw or wait. Compiles to nothing unless POSTRIDER_FAILPOINTS is set, as it
/// never is in release builds.
///
/// A process takes its failpoints from the environment when it first passes one:
///     POSTRIDER_FAILPOINT="name=kill"      SIGKILL to itself the first time; "name=kill@3" the third time
///     POSTRIDER_FAILPOINT="a=kill;b=throw@2"   several; `throw` throws Error(unavailable, retryable)
///     POSTRIDER_FAILPOINT="name=hang"      the thread stays there for ever, with all that it has locked
/// and tests of the same process from `failpoints::set`.
#if defined(POSTRIDER_FAILPOINTS)
void failpoint(std::string_view name);

namespace failpoints {
/// Runs `action` whenever the named point is passed; an empty function removes it. Thread-safe.
void set(std::string_view name, std::function<void()> action);
/// Removes all actions, those of the environment too.
void clear();
/// Takes more failpoints, written like the environment variable. Throws Error(invalid_argument) when it
/// cannot be read.
void plan(std::string_view text);
/// Every name that this process has passed so far, sorted: how a crash test learns what there is to kill at.
[[nodiscard]] std::vector<std::string> seen();
}  // namespace failpoints
#else
inline void failpoint(std::string_view) noexcept {}
#endif

}  // namespace postrider
