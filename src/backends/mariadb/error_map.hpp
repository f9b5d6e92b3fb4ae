// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "postrider/error.hpp"

namespace postrider::mariadb {

/// What the server or the client library reported.
struct Failure {
  unsigned number = 0;  ///< ER_… of the server, or CR_… (2000 to 2999) of the client
  std::string_view sqlstate{};
  std::string_view message{};
  std::string_view statement{};  ///< if it was one
};

/// Turns a failure into the library's error. Pure. `doing` is what was being done, for the message.
[[nodiscard]] Error to_error(const Failure& failure, std::string_view doing);

/// The same for a COMMIT that had been sent: a lost connection leaves its outcome unknown.
[[nodiscard]] Error to_commit_error(const Failure& failure, std::string_view doing);

}  // namespace postrider::mariadb
