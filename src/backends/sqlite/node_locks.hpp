// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/lease_store.hpp"

namespace postrider::sqlite {

/// SQLite has no sessions; the kernel has. Each node locks one byte of a file beside the database, which
/// stays empty: locks may lie behind a file's end. They are of the open file (not of the process, as older
/// ones are), so that two nodes in one process are two, and nobody else's close() lets go of them.
class SqliteNodeLocks final : public NodeLocks {
 public:
  /// The file is made when it is first needed.
  explicit SqliteNodeLocks(std::string database) : database_(std::move(database)) {}

  std::unique_ptr<Held> hold(std::string_view node) override;
  std::vector<std::string> free(std::span<const std::string> nodes) override;

 private:
  std::string database_;
};

}  // namespace postrider::sqlite
