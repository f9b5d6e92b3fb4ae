// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/detail/sync.hpp"
#include "postrider/event_handler.hpp"
#include "postrider/event_manager.hpp"

namespace postrider {

/// A registered handler with its rules resolved.
struct Handler {
  std::string id{};
  HandlerFunction function{};
  int max_attempts = 0;
  std::shared_ptr<const RetryPolicy> retry_policy{};
};

/// Which handlers want which events: those of the type in order of registration, then those for all.
/// Thread-safe.
class HandlerRegistry {
 public:
  using List = std::vector<std::shared_ptr<const Handler>>;

  /// Empty `type`: for all. Throws Error(invalid_argument) for a bad or taken id.
  void add(std::optional<std::string> type, Handler handler) POSTRIDER_EXCLUDES(mutex_);
  /// Never null. Stays as it is when others are added meanwhile.
  [[nodiscard]] std::shared_ptr<const List> find(std::string_view type) const POSTRIDER_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::set<std::string, std::less<>> ids_ POSTRIDER_GUARDED_BY(mutex_);
  std::map<std::string, List, std::less<>> by_type_ POSTRIDER_GUARDED_BY(mutex_);
  List for_all_ POSTRIDER_GUARDED_BY(mutex_);
  // Answers of `find`, thrown away when a handler is added; only types with a handler of their own are kept,
  // so that events of unknown types cannot fill the memory.
  mutable std::map<std::string, std::shared_ptr<const List>, std::less<>> found_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider
