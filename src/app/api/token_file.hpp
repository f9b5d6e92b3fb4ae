// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/clock.hpp"

namespace postrider::api {

/// Each may do what those before it may.
enum class Role : std::uint8_t {
  viewer,     ///< looks
  operator_,  ///< pauses, resumes, replays
  admin,      ///< removes, moves positions, publishes
};
[[nodiscard]] std::string_view to_string(Role role) noexcept;
[[nodiscard]] std::optional<Role> role_of(std::string_view text) noexcept;

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
/// Throws Error: unavailable for a file that cannot be read to its end, invalid_argument with the line for
/// what is none, for a file that others may write to, and for what is no regular file. Never waits.
[[nodiscard]] std::vector<TokenRecord> read_tokens(const std::string& path);
/// Adds one line, durably, to a file that is made with the mode 0600. Throws Error(conflict) for a name that
/// is there. Waits for whoever else is changing the file.
void add_token(const std::string& path, const TokenRecord& record);
/// Takes the line of that name out: the file is replaced in one step, and keeps its owner and mode. Throws
/// Error(invalid_argument) for a name that is not there, and for a symbolic link, in whose place the file
/// would come.
TokenRecord remove_token(const std::string& path, std::string_view name);

}  // namespace postrider::api
