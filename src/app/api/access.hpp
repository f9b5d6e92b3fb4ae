// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/http/message.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::api {

/// Each may do what those before it may.
enum class Role : std::uint8_t {
  viewer,     ///< looks
  operator_,  ///< pauses, resumes, replays
  admin,      ///< removes, moves positions, publishes
};
[[nodiscard]] std::string_view to_string(Role role) noexcept;
[[nodiscard]] std::optional<Role> role_of(std::string_view text) noexcept;

/// Who asks.
struct Caller {
  std::string name{};
  Role role = Role::viewer;
};

/// A token as it is kept: never the token itself.
struct TokenRecord {
  std::string name{};
  Role role = Role::viewer;
  std::string sha256{};  ///< of the token, as 64 hexadecimal digits
  std::optional<TimePoint> expires{};
};

/// A new token of 256 random bits: "prt_…".
[[nodiscard]] std::string make_token();
[[nodiscard]] std::string hash_of(std::string_view token);

/// One record per line: name, role, hash, expiry or "never"; separated by spaces. Lines with # are comments.
/// Throws Error: unavailable for a file that cannot be read, invalid_argument with the line for what is none,
/// and for a file that others may write to.
[[nodiscard]] std::vector<TokenRecord> read_tokens(const std::string& path);
/// Adds one line, durably, to a file that is made with the mode 0600. Throws Error(conflict) for a name that
/// is there.
void add_token(const std::string& path, const TokenRecord& record);

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

 private:
  Clock& clock_;
  mutable Mutex mutex_;
  std::optional<std::vector<TokenRecord>> tokens_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::api
