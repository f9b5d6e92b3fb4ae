// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <libpq-fe.h>

#include <string>
#include <string_view>

#include "postrider/error.hpp"

namespace postrider::postgres {

/// What the server (or libpq) said about a failure.
struct Failure {
  std::string sqlstate{};  ///< empty when the connection broke without a word
  std::string message{};   ///< primary message, one line
  std::string detail{};
  bool connection_lost = false;
  bool in_doubt = false;  ///< COMMIT was on its way
};

/// Reads the failure from a result, or from the connection when there is none.
[[nodiscard]] Failure failure_of(const PGresult* result, const PGconn* connection);

/// The one table of what a SQLSTATE means to a caller.
[[nodiscard]] Error make_error(std::string_view what, const Failure& failure);

}  // namespace postrider::postgres
