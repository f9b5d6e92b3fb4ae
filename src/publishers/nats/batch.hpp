// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "postrider/sink.hpp"

namespace postrider::nats {

/// Which messages of a batch may be on their way, and what became of them. A message goes when the one before
/// it with the same key is stored; behind one that has failed nothing new goes. Pure: it sends nothing. Not
/// synchronised.
class Batch {
 public:
  /// `most_bytes` on their way at a time, or one message.
  Batch(std::span<const SinkMessage> messages, std::size_t most_bytes);

  /// The next message that may go, if any.
  [[nodiscard]] std::optional<std::size_t> next();
  /// It is on its way with so many bytes.
  void sent(std::size_t index, std::size_t bytes);
  void stored(std::size_t index);
  /// It was not stored; why, and whether it never will be.
  void failed(std::size_t index, bool of_the_event, std::string reason);
  /// One of those on their way was not stored, and nobody says which: the first that is not when all others
  /// are answered.
  void one_failed(std::string reason);
  /// Whether nothing more can change the result.
  [[nodiscard]] bool settled() const noexcept {
    return first_open_ >= end_ || (halted_ && on_their_way_ == 0);
  }
  /// The first that is not stored; the batch's size when all are.
  [[nodiscard]] std::size_t first_open() const noexcept { return first_open_; }

  /// Of a settled batch.
  [[nodiscard]] PublishResult result() const;

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct Entry {
    std::size_t next_of_key = none;
    std::size_t bytes = 0;
    bool on_its_way = false;
    bool stored = false;
  };
  void answered(Entry& entry);

  std::vector<Entry> entries_;
  std::deque<std::size_t> ready_;  // may go
  const std::size_t most_bytes_;
  std::size_t on_their_way_ = 0;
  std::size_t bytes_ = 0;       // of them
  std::size_t first_open_ = 0;  // all before are stored
  std::size_t end_;             // the first that has failed
  bool of_the_event_ = false;
  bool halted_ = false;  // nothing more goes
  std::string reason_;
};

}  // namespace postrider::nats
