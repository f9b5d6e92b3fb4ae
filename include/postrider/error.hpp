// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace postrider {

/// What kind of thing went wrong. Ask `retryable()`, `in_doubt()` and `connection_lost()` before you look at
/// the code.
enum class ErrorCode {
  invalid_argument,    ///< A value was refused; the message names it and its bound.
  not_in_transaction,  ///< `publish` was called without an active transaction.
  wrong_storage,       ///< A transaction of one database was handed to a store of another.
  unavailable,         ///< The database cannot be reached, or the connection broke.
  timeout,             ///< A bounded wait (pool, lock, drain) ran out.
  conflict,            ///< A unique value (for example the event id) exists already.
  contention,          ///< Deadlock, serialization failure or a busy lock: try the transaction again.
  storage_full,        ///< Disk or quota is exhausted; works again once there is room.
  schema,              ///< Tables are missing, half migrated, or newer than this library.
  unsupported,         ///< This build or this server cannot do it.
  hook_failed,         ///< The transaction has ended as asked, but a callback after it threw.
  closed,              ///< The object was stopped.
  database,            ///< Any other failure that the database reported.
};

[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

/// The one exception of this library: infrastructure failed or an argument was refused.
/// What is expected in normal operation (a full queue, a lost lease) is a return value instead.
class Error : public std::runtime_error {
 public:
  /// Facts a caller can act on; all default to "no".
  struct Facts {
    std::string sqlstate{};        ///< Five characters when the database gave one.
    bool retryable = false;        ///< The same call may succeed later, unchanged.
    bool in_doubt = false;         ///< A COMMIT was sent and its outcome is unknown: it may have happened.
    bool connection_lost = false;  ///< The connection is gone; a new one is needed.
  };

  /// The message reads "postrider: <what>: <why>. Hint: <hint>"; `why` and `hint` may be empty.
  Error(ErrorCode code, std::string_view what, std::string_view why = {}, std::string_view hint = {});
  Error(ErrorCode code, Facts facts, std::string_view what, std::string_view why = {},
        std::string_view hint = {});

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] const std::string& sqlstate() const noexcept { return facts_.sqlstate; }
  [[nodiscard]] bool retryable() const noexcept { return facts_.retryable; }
  [[nodiscard]] bool in_doubt() const noexcept { return facts_.in_doubt; }
  [[nodiscard]] bool connection_lost() const noexcept { return facts_.connection_lost; }

 private:
  ErrorCode code_;
  Facts facts_;
};

}  // namespace postrider
