// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace postrider {

/// A name that may stand in SQL text: ^[a-z_][a-z0-9_]{0,62}$. The only way a schema or prefix reaches a
/// statement.
class Identifier {
 public:
  /// Throws Error(invalid_argument) for anything else.
  Identifier(std::string_view name);                                    // NOLINT(google-explicit-constructor)
  Identifier(const char* name) : Identifier(std::string_view(name)) {}  // NOLINT(google-explicit-constructor)
  Identifier(const std::string& name)
      : Identifier(std::string_view(name)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const std::string& str() const noexcept { return name_; }
  friend bool operator==(const Identifier&, const Identifier&) = default;

 private:
  std::string name_;
};

}  // namespace postrider
