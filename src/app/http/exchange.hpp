// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "app/http/budget.hpp"
#include "app/http/router.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::http {

class Session;
struct Shared;

/// A request in the hands of its handler. Whoever comes first, the handler's answer or the end of its time,
/// takes the session and writes to it; the other one finds it gone. So a handler that hangs holds up neither
/// the connection nor the server's end, but the memory of its request counts until it lets go of it.
/// Thread-safe, but for `run`.
class Exchange {
 public:
  /// What the request takes of the budget.
  struct Holds {
    Budget::Hold body;
    Budget::Hold unpacked;
  };

  Exchange(std::shared_ptr<Session> session, Shared& shared, const Route& route, Request request, Holds holds,
           bool packed)
      : shared_(shared),
        route_(route),
        packed_(packed),
        request_(std::move(request)),
        session_(std::move(session)),
        holds_(std::move(holds)) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  [[nodiscard]] const Route& route() const noexcept { return route_; }
  /// Has the handler answer, once. Does nothing when nobody waits any more.
  void run(const Reply& reply);

  [[nodiscard]] bool wanted() const POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return session_ != nullptr;
  }
  /// Null when another one was first.
  [[nodiscard]] std::shared_ptr<Session> take() POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::exchange(session_, nullptr);
  }
  /// For whoever has taken the session with an answer: the handler has no use for the request any more.
  [[nodiscard]] Holds take_holds() POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::move(holds_);
  }

 private:
  /// The body as it was before gzip, or what is wrong with it.
  [[nodiscard]] std::optional<Problem> unpack(std::string& body) POSTRIDER_EXCLUDES(mutex_);

  Shared& shared_;
  const Route& route_;
  const bool packed_;
  Request request_;
  mutable Mutex mutex_;
  std::shared_ptr<Session> session_ POSTRIDER_GUARDED_BY(mutex_);
  Holds holds_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::http
