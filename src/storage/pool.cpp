// SPDX-License-Identifier: Apache-2.0
#include "storage/pool.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/age.hpp"
#include "core/option_check.hpp"
#include "core/without_prefix.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"

namespace postrider {

ConnectionPool::Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), connection_(std::move(other.connection_)) {}

ConnectionPool::Lease& ConnectionPool::Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    if (connection_ != nullptr) pool_->give_back(std::move(connection_));
    pool_ = std::exchange(other.pool_, nullptr);
    connection_ = std::move(other.connection_);
  }
  return *this;
}

ConnectionPool::Lease::~Lease() {
  if (connection_ != nullptr) pool_->give_back(std::move(connection_));
}

void ConnectionPool::Lease::discard() noexcept {
  if (connection_ == nullptr) return;
  connection_.reset();
  pool_->forget();
}

ConnectionPool::ConnectionPool(PoolOptions options, Connect connect, Clock& clock)
    : options_(std::move(options)), connect_(std::move(connect)), clock_(clock) {
  options_.log = guarded(std::move(options_.log));
  const MutexLock lock(mutex_);
  idle_.reserve(options_.size);  // so that giving back cannot fail
}

ConnectionPool::~ConnectionPool() = default;

ConnectionPool::Lease ConnectionPool::acquire() {
  const SteadyPoint deadline = clock_.steady_now() + options_.acquire_timeout;
  for (;;) {
    std::optional<Idle> rested = idle_or_permit(deadline);
    if (rested.has_value()) {
      const bool fresh = clock_.steady_now() - rested->since <= options_.ping_after;
      if (fresh || rested->connection->ping()) return Lease(*this, std::move(rested->connection));
      rested.reset();
      forget();
      // The others that rest are as dead as this one; to learn it from each might take a timeout each.
      clear_idle();
      continue;
    }
    if (std::unique_ptr<PooledConnection> made = connect_or_back_off(deadline))
      return Lease(*this, std::move(made));
  }
}

std::optional<ConnectionPool::Idle> ConnectionPool::idle_or_permit(SteadyPoint deadline) {
  const MutexLock lock(mutex_);
  ++waiting_;
  struct Waiting {  // the count falls on every way out; all of them are under the lock
    std::size_t& count;
    ~Waiting() { --count; }
  } const waiting{waiting_};
  for (;;) {
    if (!idle_.empty()) {
      Idle rested = std::move(idle_.back());
      idle_.pop_back();
      return rested;
    }
    const SteadyPoint now = clock_.steady_now();
    SteadyPoint wake = deadline;
    if (open_ < options_.size && !probing_) {
      if (now >= next_connect_) {
        ++open_;
        probing_ =
            last_error_
                .has_value();  // while the server is away one caller tries, the others wait for its verdict
        return std::nullopt;
      }
      if (next_connect_ >= deadline || !worth_waiting()) throw not_tried_again(now);
      wake = next_connect_;
    }
    if (now >= deadline) {
      if (open_ < options_.size && last_error_.has_value()) throw not_tried_again(now);
      throw Error(ErrorCode::timeout, {.retryable = true}, "no free connection to " + options_.name,
                  "the pool has " + counted(options_.size, "connection") + ", and none is free",
                  "end transactions sooner, or raise StorageOptions::pool_size");
    }
    clock_.wait_until(changed_, mutex_, wake);
  }
}

bool ConnectionPool::worth_waiting() const {
  return was_there_ && last_error_->retryable();
}

Error ConnectionPool::not_tried_again(SteadyPoint now) const {
  // Rounded up: "0 ms" would say that the next call tries.
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      std::max(next_connect_ - now, SteadyPoint::duration::zero()));
  const Error& last = *last_error_;
  return Error(
      last.code(),
      {.sqlstate = last.sqlstate(), .retryable = last.retryable(), .connection_lost = last.connection_lost()},
      "no connection to " + options_.name,
      (probing_ ? std::string("another caller is trying right now")
                : "not trying again for " + std::to_string(left.count()) + " ms") +
          "; the last attempt failed: " + cause_of(last));
}

std::string ConnectionPool::cause_of(const Error& error) const {
  std::string_view cause = without_prefix(error.what());
  const std::string subject = "cannot connect to " + options_.name + ": ";
  if (cause.starts_with(subject)) cause.remove_prefix(subject.size());
  return std::string(cause);
}

std::unique_ptr<PooledConnection> ConnectionPool::connect_or_back_off(SteadyPoint deadline) {
  try {
    std::unique_ptr<PooledConnection> made = connect_();
    connected();
    return made;
  } catch (const Error& error) {
    if (!refused(error) || clock_.steady_now() >= deadline) throw;
    return nullptr;
  } catch (...) {
    {
      const MutexLock lock(mutex_);
      probing_ = false;
    }
    forget();
    throw;
  }
}

void ConnectionPool::connected() {
  std::optional<SteadyPoint> away;
  {
    const MutexLock lock(mutex_);
    failed_connects_ = 0;
    next_connect_ = {};
    last_error_.reset();
    was_there_ = true;
    probing_ = false;
    away = std::exchange(away_since_, std::nullopt);
  }
  changed_.notify_all();
  if (!away) return;
  options_.log(LogLevel::info,
               "postrider: " + options_.name + " takes connections again, after " +
                   format_about(std::chrono::duration_cast<Duration>(clock_.steady_now() - *away)));
}

bool ConnectionPool::refused(const Error& error) {
  bool wait = false;
  bool news = false;
  {
    const MutexLock lock(mutex_);
    --open_;
    probing_ = false;
    const int doublings = std::min(failed_connects_++, 20);
    const SteadyPoint now = clock_.steady_now();
    next_connect_ =
        now + std::min(options_.reconnect_max, options_.reconnect_base * (std::int64_t{1} << doublings));
    last_error_.emplace(error);
    wait = worth_waiting();
    news = was_there_ && !away_since_;
    if (news) away_since_ = now;
  }
  changed_.notify_all();
  if (news) {
    options_.log(LogLevel::warning, "postrider: " + options_.name +
                                        " takes no connections, and is tried again: " + cause_of(error));
  }
  return wait;
}

void ConnectionPool::give_back(std::unique_ptr<PooledConnection> connection) noexcept {
  if (!connection->usable()) {
    connection.reset();
    forget();
    return;
  }
  {
    const MutexLock lock(mutex_);
    idle_.push_back({std::move(connection), clock_.steady_now()});
  }
  changed_.notify_all();
}

void ConnectionPool::forget() noexcept {
  {
    const MutexLock lock(mutex_);
    --open_;
  }
  changed_.notify_all();
}

PoolStats ConnectionPool::stats() const {
  const MutexLock lock(mutex_);
  return {.open = open_,
          .limit = options_.size,
          .in_use = open_ - idle_.size(),
          .waiting = waiting_,
          .trouble = last_error_ ? last_error_->what() : std::string()};
}

void ConnectionPool::clear_idle() {
  std::vector<Idle> closing;  // closed outside the mutex
  closing.reserve(options_.size);
  {
    const MutexLock lock(mutex_);
    closing.swap(idle_);
    open_ -= closing.size();
  }
  changed_.notify_all();
}

}  // namespace postrider
