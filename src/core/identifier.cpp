// SPDX-License-Identifier: Apache-2.0
#include "postrider/identifier.hpp"

#include <algorithm>

#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

constexpr std::size_t max_identifier = 63;  // PostgreSQL cuts longer ones

// Not <cctype>: these must not depend on the locale.
constexpr bool starts_identifier(char c) noexcept {
  return (c >= 'a' && c <= 'z') || c == '_';
}
constexpr bool continues_identifier(char c) noexcept {
  return starts_identifier(c) || (c >= '0' && c <= '9');
}

}  // namespace

Identifier::Identifier(std::string_view name) : name_(name) {
  const bool ok = !name.empty() && name.size() <= max_identifier && starts_identifier(name.front()) &&
                  std::all_of(name.begin(), name.end(), continues_identifier);
  if (ok) return;
  const std::string shown = utf8_repaired(utf8_prefix(name, max_identifier + 1));
  throw Error(ErrorCode::invalid_argument, "'" + shown + "' cannot name a schema or a prefix",
              "it must match ^[a-z_][a-z0-9_]{0,62}$",
              "use 1 to 63 lower-case letters, digits and underscores, no digit first");
}

}  // namespace postrider
