// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "postrider/transaction.hpp"

namespace postrider::test {

/// A connection that the test's "user" opened with the database's own driver, for testing adopted
/// transactions.
class ForeignConnection {
 public:
  virtual ~ForeignConnection() = default;
  /// One statement without parameters or results; throws std::runtime_error with the driver's message.
  virtual void run(const std::string& sql) = 0;
  [[nodiscard]] virtual AdoptedTx adopt() = 0;

  void begin() { run("BEGIN"); }
  void commit() { run("COMMIT"); }
  void rollback() { run("ROLLBACK"); }

  /// By URL, as `postrider::open` takes it.
  [[nodiscard]] static std::unique_ptr<ForeignConnection> open(BackendKind kind, const std::string& url);
};

}  // namespace postrider::test
