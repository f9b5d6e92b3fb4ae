// SPDX-License-Identifier: Apache-2.0
#include "publishers/nats/batch.hpp"

#include <string_view>
#include <unordered_map>
#include <utility>

namespace postrider::nats {

Batch::Batch(std::span<const SinkMessage> messages, std::size_t most_bytes)
    : entries_(messages.size()), most_bytes_(most_bytes), end_(messages.size()) {
  std::unordered_map<std::string_view, std::size_t> last_of_key;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].key.empty()) {
      ready_.push_back(i);
      continue;
    }
    const auto [found, first] = last_of_key.try_emplace(messages[i].key, i);
    if (first) {
      ready_.push_back(i);
    } else {
      entries_[std::exchange(found->second, i)].next_of_key = i;
    }
  }
}

std::optional<std::size_t> Batch::next() {
  while (!ready_.empty() && ready_.front() >= end_) ready_.pop_front();
  if (ready_.empty() || halted_ || (on_their_way_ != 0 && bytes_ >= most_bytes_)) return std::nullopt;
  const std::size_t index = ready_.front();
  ready_.pop_front();
  return index;
}

void Batch::sent(std::size_t index, std::size_t bytes) {
  entries_[index].on_its_way = true;
  entries_[index].bytes = bytes;
  ++on_their_way_;
  bytes_ += bytes;
}

void Batch::answered(Entry& entry) {
  if (!std::exchange(entry.on_its_way, false)) return;
  --on_their_way_;
  bytes_ -= entry.bytes;
}

void Batch::stored(std::size_t index) {
  if (index >= entries_.size() || entries_[index].stored) return;
  Entry& entry = entries_[index];
  answered(entry);
  entry.stored = true;
  if (entry.next_of_key != none) ready_.push_back(entry.next_of_key);
  while (first_open_ < entries_.size() && entries_[first_open_].stored) ++first_open_;
}

void Batch::failed(std::size_t index, bool of_the_event, std::string reason) {
  if (index >= entries_.size()) return;
  answered(entries_[index]);
  if (index >= end_) return;  // an earlier one decides
  end_ = index;
  of_the_event_ = of_the_event;
  reason_ = std::move(reason);
}

void Batch::one_failed(std::string reason) {
  if (on_their_way_ != 0) --on_their_way_;
  if (halted_) return;
  halted_ = true;
  reason_ = std::move(reason);
}

PublishResult Batch::result() const {
  if (first_open_ >= entries_.size()) return PublishResult::all();
  return of_the_event_ && first_open_ == end_ ? PublishResult::refused(first_open_, reason_)
                                              : PublishResult::unavailable(first_open_, reason_);
}

}  // namespace postrider::nats
