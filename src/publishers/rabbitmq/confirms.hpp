// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "publishers/key_order.hpp"

namespace postrider {

/// Which messages of one batch may go, and what the broker has said of them. It numbers them as they go: the
/// first has the tag `first`. Pure.
class Confirms {
 public:
  Confirms(KeyOrder order, std::size_t count, std::uint64_t first)
      : order_(std::move(order)), first_(first), states_(count, State::here) {
    sent_.reserve(count);
  }

  /// The one that may go now, if any.
  [[nodiscard]] std::optional<std::size_t> next() const { return order_.peek(); }
  /// `next` has gone.
  void sent() {
    sent_.push_back(*order_.peek());
    states_[sent_.back()] = State::on_its_way;
    order_.take();
  }
  void ack(std::uint64_t tag, bool multiple) { settle(tag, multiple, State::acked); }
  void nack(std::uint64_t tag, bool multiple) { settle(tag, multiple, State::failed); }
  /// It came back; an acknowledgement follows, and means nothing.
  void returned(std::size_t at) { end(at, State::failed); }

  /// How many from the beginning are safe.
  [[nodiscard]] std::size_t safe() const { return safe_; }
  [[nodiscard]] std::size_t on_the_way() const { return sent_.size() - ended_; }
  [[nodiscard]] bool is_on_the_way(std::size_t at) const { return states_[at] == State::on_its_way; }
  /// The first that is known to have failed.
  [[nodiscard]] std::optional<std::size_t> failed() const { return failed_; }

 private:
  enum class State : std::uint8_t { here, on_its_way, acked, failed };

  void settle(std::uint64_t tag, bool multiple, State state) {
    if (tag < first_) {
      if (tag != 0 || !multiple || sent_.empty()) return;
      tag = first_ + sent_.size() - 1;  // 0: all there are
    }
    const std::uint64_t last = tag - first_;
    if (last >= sent_.size()) return;
    for (std::size_t i = multiple ? settled_ : static_cast<std::size_t>(last); i <= last; ++i) {
      end(sent_[i], state);
    }
    while (settled_ < sent_.size() && !is_on_the_way(sent_[settled_])) ++settled_;
  }
  void end(std::size_t at, State state) {
    if (at >= states_.size() || !is_on_the_way(at)) return;
    states_[at] = state;
    ++ended_;
    if (state == State::failed) {
      failed_ = std::min(at, failed_.value_or(at));
      return;
    }
    order_.done(at);
    while (safe_ < states_.size() && states_[safe_] == State::acked) ++safe_;
  }

  KeyOrder order_;
  std::uint64_t first_;
  std::vector<State> states_;
  std::vector<std::size_t> sent_;  // in the order of their tags
  std::size_t settled_ = 0;        // of `sent_`: nobody waits for news of those before
  std::size_t ended_ = 0;
  std::size_t safe_ = 0;
  std::optional<std::size_t> failed_;
};

}  // namespace postrider
