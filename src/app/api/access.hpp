// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/api/token_file.hpp"
#include "app/http/message.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::api {

/// Who asks.
struct Caller {
  std::string name{};
  Role role = Role::viewer;
  std::string sha256{};  ///< of his token; empty for whoever needs none
};

/// Decides who may do what. Thread-safe.
class Access {
 public:
  /// Without tokens everybody who reaches the address is an admin: for loopback alone.
  explicit Access(Clock& clock) : clock_(clock) {}

  /// From now on; nothing: as at first.
  void use(std::optional<std::vector<TokenRecord>> tokens) POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] bool needs_token() const POSTRIDER_EXCLUDES(mutex_);
  /// The caller, or why he is none: 401 without a token that is known, 403 for one whose role does not reach,
  /// and for a page of somebody else that makes a browser ask.
  struct Verdict {
    std::optional<Caller> caller{};
    http::Problem problem{};
  };
  [[nodiscard]] Verdict decide(const http::Request& request, Role needed) const POSTRIDER_EXCLUDES(mutex_);
  /// For Route::admit: whoever may not ask sends no body.
  [[nodiscard]] std::optional<http::Problem> refusal(const http::Request& request, Role needed) const
      POSTRIDER_EXCLUDES(mutex_);

  /// Whether who was let in would be let in now, too: for answers that take longer than a token may live.
  [[nodiscard]] bool still_good(const Caller& caller, Role needed) const POSTRIDER_EXCLUDES(mutex_);

 private:
  Clock& clock_;
  mutable Mutex mutex_;
  std::optional<std::vector<TokenRecord>> tokens_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::api
