// SPDX-License-Identifier: Apache-2.0
// The backend's side of a transaction. Users meet it only as `Transaction` or `AdoptedTx`.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <unordered_set>

#include "postrider/event_id.hpp"
#include "postrider/value.hpp"

namespace postrider {

enum class BackendKind { sqlite, postgres, mariadb };

[[nodiscard]] std::string_view to_string(BackendKind kind) noexcept;

namespace detail {

/// Of a transaction of ours: how often a part of it was undone (ROLLBACK TO SAVEPOINT), or may have been.
/// Events published before the last time are looked up before they are delivered.
struct PartialRollbacks {
  std::size_t count = 0;
  std::unordered_set<EventId> published_since{};  ///< the first
};

class TxSession {
 public:
  virtual ~TxSession() = default;
  TxSession() = default;
  TxSession(const TxSession&) = delete;
  TxSession& operator=(const TxSession&) = delete;

  [[nodiscard]] virtual BackendKind kind() const noexcept = 0;
  /// True while statements take part in a transaction that is neither committed nor rolled back. Asks the
  /// driver, not the network.
  [[nodiscard]] virtual bool active() const noexcept = 0;
  /// Runs one statement with bound parameters, `?` or the backend's own placeholders.
  virtual Rows execute(std::string_view sql, std::span<const Value> params) = 0;

  /// Only sessions of `Storage::begin` are ever asked to end. `commit` throws Error with in_doubt() when the
  /// connection broke after COMMIT was sent.
  virtual void commit() = 0;
  virtual void rollback() noexcept = 0;
};

}  // namespace detail
}  // namespace postrider
