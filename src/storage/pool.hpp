// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/error.hpp"
#include "postrider/log.hpp"
#include "postrider/storage.hpp"

namespace postrider {

/// A connection that a pool can keep.
class PooledConnection {
 public:
  virtual ~PooledConnection() = default;
  /// False once the connection is known to be broken; asks nobody.
  [[nodiscard]] virtual bool usable() const noexcept = 0;
  /// One round trip; false when it failed.
  [[nodiscard]] virtual bool ping() noexcept = 0;
};

struct PoolOptions {
  std::size_t size = 16;
  Duration acquire_timeout = std::chrono::seconds{10};
  /// A connection that rested longer than this is pinged before it is handed out.
  Duration ping_after = std::chrono::seconds{30};
  /// Pause after a failed connect, doubling up to the second value, during which further callers fail fast
  /// with the same error instead of hammering the server (unless they can wait). Short enough for those who
  /// wait while the server comes back.
  Duration reconnect_base = std::chrono::milliseconds{50};
  Duration reconnect_max = std::chrono::seconds{1};
  std::string name{};  ///< for messages
  /// Hears once that a server which was there takes no connections, and once that it does again.
  LogCallback log{};
};

/// A bounded pool. Thread-safe. Connections are made on demand, on the caller's thread, outside the pool's
/// mutex.
class ConnectionPool {
 public:
  using Connect = std::function<std::unique_ptr<PooledConnection>()>;

  /// A borrowed connection; goes back (or is thrown away, when no longer usable) on destruction.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();
    [[nodiscard]] PooledConnection& operator*() const noexcept { return *connection_; }
    [[nodiscard]] PooledConnection* get() const noexcept { return connection_.get(); }
    [[nodiscard]] explicit operator bool() const noexcept { return connection_ != nullptr; }
    /// Closes the connection instead of giving it back.
    void discard() noexcept;

   private:
    friend class ConnectionPool;
    Lease(ConnectionPool& pool, std::unique_ptr<PooledConnection> connection) noexcept
        : pool_(&pool), connection_(std::move(connection)) {}
    ConnectionPool* pool_ = nullptr;
    std::unique_ptr<PooledConnection> connection_;
  };

  ConnectionPool(PoolOptions options, Connect connect, Clock& clock = Clock::system());
  ~ConnectionPool();

  /// Waits for a free connection until the deadline, connecting with backoff while the server is away. Throws
  /// Error(timeout) when all are in use, the connect error when there is none to be had; both retryable. A
  /// server that was never there is not waited for: more likely its address is wrong.
  [[nodiscard]] Lease acquire();
  [[nodiscard]] PoolStats stats() const;
  /// Closes idle connections (for example after the server went away).
  void clear_idle();

 private:
  struct Idle {
    std::unique_ptr<PooledConnection> connection;
    SteadyPoint since;
  };
  /// An idle connection, or nothing: then the caller has been counted in and must connect.
  [[nodiscard]] std::optional<Idle> idle_or_permit(SteadyPoint deadline) POSTRIDER_EXCLUDES(mutex_);
  /// Null when it failed and there is time to wait for the next attempt.
  [[nodiscard]] std::unique_ptr<PooledConnection> connect_or_back_off(SteadyPoint deadline)
      POSTRIDER_EXCLUDES(mutex_);
  /// After a failed connect.
  [[nodiscard]] bool worth_waiting() const POSTRIDER_REQUIRES(mutex_);
  /// The error of the last connect, once more, with a word that nobody has tried since.
  [[nodiscard]] Error not_tried_again(SteadyPoint now) const POSTRIDER_REQUIRES(mutex_);
  /// In a line that names the server already.
  [[nodiscard]] std::string cause_of(const Error& error) const;
  /// Say what one attempt to connect has shown, when it is news.
  void connected() POSTRIDER_EXCLUDES(mutex_);
  /// Whether it is worth waiting for the next attempt.
  [[nodiscard]] bool refused(const Error& error) POSTRIDER_EXCLUDES(mutex_);
  void give_back(std::unique_ptr<PooledConnection> connection) noexcept POSTRIDER_EXCLUDES(mutex_);
  void forget() noexcept POSTRIDER_EXCLUDES(mutex_);

  PoolOptions options_;
  Connect connect_;
  Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Idle> idle_ POSTRIDER_GUARDED_BY(mutex_);  // last in, first out
  std::size_t open_ POSTRIDER_GUARDED_BY(mutex_) = 0;    // idle, in use or being made
  std::size_t waiting_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  int failed_connects_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  SteadyPoint next_connect_ POSTRIDER_GUARDED_BY(mutex_){};
  std::optional<Error> last_error_ POSTRIDER_GUARDED_BY(mutex_);  // of the last connect, until one succeeds
  std::optional<SteadyPoint> away_since_ POSTRIDER_GUARDED_BY(mutex_);  // and that is told
  bool was_there_ POSTRIDER_GUARDED_BY(mutex_) = false;                 // has ever let somebody connect
  bool probing_ POSTRIDER_GUARDED_BY(mutex_) = false;                   // somebody connects after a failure
};

}  // namespace postrider
