// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/mariadb/url.hpp"
#include "backends/mariadb/work.hpp"
#include "postrider/identifier.hpp"
#include "storage/lease_store.hpp"

namespace postrider::mariadb {

/// GET_LOCK, each on a connection of its own beside the pool.
class MariadbNodeLocks final : public NodeLocks {
 public:
  /// `settings` and `work` must outlive this.
  MariadbNodeLocks(const ConnectSettings& settings, const Identifier& schema, const Work& work);

  std::unique_ptr<Held> hold(std::string_view node) override;
  std::vector<std::string> free(std::span<const std::string> nodes) override;

 private:
  [[nodiscard]] std::string lock_name(std::string_view node) const;

  const ConnectSettings& settings_;
  std::string schema_;
  const Work& work_;
};

}  // namespace postrider::mariadb
