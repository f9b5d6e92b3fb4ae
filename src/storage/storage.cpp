// SPDX-License-Identifier: Apache-2.0
#include "postrider/storage.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "core/option_check.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

struct Component {
  std::string_view scheme;
  std::string_view target;
};
constexpr std::array components{
    Component{"sqlite", "postrider::postrider"},  Component{"postgresql", "postrider::postgres"},
    Component{"postgres", "postrider::postgres"}, Component{"mariadb", "postrider::mariadb"},
    Component{"mysql", "postrider::mariadb"},
};

std::string available(std::span<const StorageDriver> drivers) {
  std::string list;
  for (const StorageDriver& driver : drivers) {
    for (const std::string_view scheme : driver.schemes) {
      if (!list.empty()) list += ", ";
      list.append(scheme).append(":");
    }
  }
  return list.empty() ? "none" : list;
}

void check_bounds(const StorageOptions& options) {
  constexpr Duration longest = std::chrono::hours{24};
  const OptionCheck check("StorageOptions");
  check.count("pool_size", options.pool_size, 1, 1000);
  check.time("acquire_timeout", options.acquire_timeout, Duration::zero(), longest);
  check.time("connect_timeout", options.connect_timeout, Duration::zero(), longest);
  check.time("io_timeout", options.io_timeout, Duration::zero(), longest);
  check.time("sqlite_busy_timeout", options.sqlite_busy_timeout, Duration::zero(), longest);
}

}  // namespace

std::string_view to_string(BackendKind kind) noexcept {
  switch (kind) {
    case BackendKind::sqlite:
      return "sqlite";
    case BackendKind::postgres:
      return "postgres";
    case BackendKind::mariadb:
      return "mariadb";
  }
  return "unknown";
}

std::unique_ptr<Storage> open_with(std::span<const StorageDriver> drivers, std::string_view url,
                                   const StorageOptions& options) {
  // Messages name the scheme only: the rest of a URL may hold a password.
  const std::size_t colon = url.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    throw Error(ErrorCode::invalid_argument, "cannot open a storage", "its URL has no scheme",
                "write sqlite:shop.db, postgresql://user@host/database or mariadb://user@host/database");
  }
  check_bounds(options);
  const std::string_view scheme = url.substr(0, colon);
  for (const StorageDriver& driver : drivers) {
    if (std::find(driver.schemes.begin(), driver.schemes.end(), scheme) != driver.schemes.end()) {
      return driver.open(url, options);
    }
  }
  const std::string what = "cannot open a storage with scheme '" + std::string(scheme) + ":'";
  const auto* component = std::find_if(components.begin(), components.end(),
                                       [&](const Component& c) { return c.scheme == scheme; });
  if (component != components.end()) {
    throw Error(ErrorCode::unsupported, what,
                "its component is not part of this program; available: " + available(drivers),
                "link " + std::string(component->target));
  }
  throw Error(ErrorCode::unsupported, what, "no such scheme; available: " + available(drivers));
}

}  // namespace postrider
