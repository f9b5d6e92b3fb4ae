// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/storage_starter.hpp"

#include <string>
#include <utility>

#include "core/option_check.hpp"
#include "core/what_of.hpp"
#include "core/without_prefix.hpp"
#include "postrider/error.hpp"
#include "postrider/retry_policy.hpp"

namespace postrider::daemon {
namespace {

constexpr Duration first_pause = std::chrono::seconds{1};
constexpr Duration longest_pause = std::chrono::seconds{15};

StorageStarter::Options checked(StorageStarter::Options options) {
  options.log = guarded(std::move(options.log));
  return options;
}

}  // namespace

StorageStarter::StorageStarter(Storage& storage, Options options)
    : storage_(storage), options_(checked(std::move(options))), thread_([this] { run(); }) {}

StorageStarter::State StorageStarter::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

StorageStarter::State StorageStarter::await_first(Duration timeout) const {
  const SteadyPoint deadline = options_.clock->steady_now() + timeout;
  const MutexLock lock(mutex_);
  while (state_ == State::trying && options_.clock->steady_now() < deadline) {
    options_.clock->wait_until(changed_, mutex_, deadline);
  }
  return state_;
}

std::exception_ptr StorageStarter::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

std::string StorageStarter::trouble() const {
  const MutexLock lock(mutex_);
  return trouble_;
}

void StorageStarter::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StorageStarter::run() noexcept {
  // Half of the jitter is none: nobody else waits beside us whom it could keep apart.
  constexpr double no_jitter = 0.5;
  const ExponentialBackoffRetryPolicy pauses(first_pause, longest_pause);
  for (int failed = 0;;) {
    try {
      if (options_.migrate) storage_.migrate();
      if (options_.then) options_.then();
      if (failed > 0)
        options_.log(LogLevel::info, "postrider: the database " + storage_.name() + " is there");
      set(State::ready);
      return;
    } catch (const std::exception& error) {
      const auto* known = dynamic_cast<const Error*>(&error);
      const bool passes =
          known != nullptr && (known->code() == ErrorCode::unavailable || known->retryable() ||
                               known->connection_lost() || known->code() == ErrorCode::timeout);
      if (!passes || !options_.wait) {
        set(State::failed, what_of(error), std::current_exception());
        return;
      }
      const Duration wait = pauses.delay(Attempt{++failed}, no_jitter);
      options_.log(LogLevel::warning,
                   "postrider: waiting for the database, next attempt in " +
                       std::to_string(std::chrono::ceil<std::chrono::seconds>(wait).count()) +
                       " s: " + std::string(without_prefix(what_of(error))));
      set(State::waiting, what_of(error));
      if (!pause(wait)) return;
    }
  }
}

bool StorageStarter::pause(Duration time) {
  const SteadyPoint until = options_.clock->steady_now() + time;
  const MutexLock lock(mutex_);
  while (!stopping_ && options_.clock->steady_now() < until) {
    options_.clock->wait_until(changed_, mutex_, until);
  }
  return !stopping_;
}

void StorageStarter::set(State state, std::string trouble, std::exception_ptr failure) {
  {
    const MutexLock lock(mutex_);
    state_ = state;
    trouble_ = std::move(trouble);
    failure_ = std::move(failure);
  }
  changed_.notify_all();
}

}  // namespace postrider::daemon
