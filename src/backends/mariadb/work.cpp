// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/work.hpp"

#include "backends/mariadb/connection.hpp"
#include "core/failpoint.hpp"
#include "postrider/error.hpp"

namespace postrider::mariadb {
namespace {

constexpr int contention_attempts = 5;

Link& link_of(ConnectionPool::Lease& lease) {
  return static_cast<Connection&>(*lease).link();
}

/// Ends what a failed body left open, so that the connection goes back clean, or not at all.
void abandon(ConnectionPool::Lease& lease) noexcept {
  Link& link = link_of(lease);
  if (!link.alive()) return;
  try {
    link.rollback();
  } catch (const Error&) {
    lease.discard();  // closing rolls back as well
  }
}

}  // namespace

void Work::run(const std::function<void(Link&)>& body) const {
  bool reconnected = false;
  for (int attempt = 1;; ++attempt) {
    ConnectionPool::Lease lease = pool_.acquire();
    const SteadyPoint begun = std::chrono::steady_clock::now();
    try {
      body(link_of(lease));
      return;
    } catch (const Error& error) {
      abandon(lease);
      if (error.in_doubt()) throw;
      // One that was silent for so long is not asked again: the statement may still be at work there.
      const bool silent =
          patience_ != Duration::zero() && std::chrono::steady_clock::now() - begun >= patience_;
      if (error.connection_lost() && silent) pool_.clear_idle();
      if (error.connection_lost() && !silent && !reconnected) {
        // The server was restarted, or closed what rested too long: the others in the pool are as dead as
        // this one.
        reconnected = true;
        pool_.clear_idle();
        continue;
      }
      if (error.code() != ErrorCode::contention || attempt >= contention_attempts) throw;
    } catch (...) {
      abandon(lease);
      throw;
    }
  }
}

void Work::transaction(const std::function<void(Link&)>& body, Points points) const {
  run([&](Link& link) {
    link.begin();
    body(link);
    if (points.before_commit != nullptr) failpoint(points.before_commit);
    link.commit();
    if (points.after_commit != nullptr) failpoint(points.after_commit);
  });
}

ConnectionPool::Lease Work::begin() const {
  ConnectionPool::Lease lease = pool_.acquire();
  try {
    link_of(lease).begin();
    return lease;
  } catch (const Error& error) {
    if (!error.connection_lost()) throw;
  }
  // Nothing has been done yet, so a connection that broke while it rested is no reason to fail.
  lease = {};
  pool_.clear_idle();
  lease = pool_.acquire();
  link_of(lease).begin();
  return lease;
}

}  // namespace postrider::mariadb
