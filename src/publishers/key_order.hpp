// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/sink.hpp"

namespace postrider {

/// Which message of a batch may go next: the first of those with none of the same key before it that is not
/// done. Pure.
class KeyOrder {
 public:
  enum class Rule : std::uint8_t {
    by_key,
    as_one_key,  ///< as if all had the same
    any,         ///< as if none had one
  };
  explicit KeyOrder(std::span<const SinkMessage> messages, Rule rule = Rule::by_key)
      : following_(messages.size(), 0) {
    std::unordered_map<std::string_view, std::size_t> last;
    for (std::size_t at = 0; at < messages.size(); ++at) {
      const std::string_view key = rule == Rule::as_one_key ? std::string_view("the same") : messages[at].key;
      if (key.empty() || rule == Rule::any) {
        ready_.push(at);
        continue;
      }
      const auto [before, first] = last.try_emplace(key, at);
      if (first) {
        ready_.push(at);
      } else {
        following_[before->second] = at;
        before->second = at;
      }
    }
  }

  [[nodiscard]] std::optional<std::size_t> peek() const {
    return ready_.empty() ? std::nullopt : std::optional(ready_.top());
  }
  void take() { ready_.pop(); }
  void done(std::size_t at) {
    if (following_[at] != 0) ready_.push(following_[at]);
  }

 private:
  std::vector<std::size_t> following_;  // of the same key; 0: none, for the first follows nobody
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready_;
};

}  // namespace postrider
