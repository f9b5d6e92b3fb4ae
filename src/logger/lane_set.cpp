// SPDX-License-Identifier: Apache-2.0
#include "logger/lane_set.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/what_of.hpp"
#include "core/wording.hpp"
#include "logger/asymmetric_fence.hpp"

namespace postrider::logger {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view file_prefix = "eventlog-ring.";

std::atomic<std::uint64_t> next_set_id{1};
thread_local constinit bool thread_is_ending = false;

}  // namespace

thread_local constinit std::uint64_t LaneSet::cached_set = 0;
thread_local constinit Lane* LaneSet::cached_lane = nullptr;

/// The lanes of one thread, in all sets. Gives them back when the thread ends.
struct ThreadLanes {
  struct Held {
    std::uint64_t id;
    std::weak_ptr<LaneSet> set;
    Lane* lane;
  };
  std::vector<Held> held;

  ~ThreadLanes() {
    thread_is_ending = true;
    LaneSet::cached_set = 0;
    for (const Held& each : held) {
      if (const auto set = each.set.lock()) each.lane->owned.store(false, std::memory_order_release);
    }
  }
};

std::shared_ptr<LaneSet> LaneSet::make(LaneOptions options) {
  AsymmetricFence::prepare();
  std::shared_ptr<LaneSet> set(new LaneSet(std::move(options)));
  if (!set->options_.folder.empty()) set->take_over_files();
  return set;
}

LaneSet::LaneSet(LaneOptions options) : id_(next_set_id++), options_(std::move(options)) {}
LaneSet::~LaneSet() = default;

void LaneSet::take_over_files() {
  std::vector<std::pair<unsigned, std::string>> files;
  for (const auto& entry : fs::directory_iterator(options_.folder)) {
    const std::string name = entry.path().filename().string();
    unsigned number = 0;
    const char* const end = name.data() + name.size();
    if (!name.starts_with(file_prefix)) continue;
    const auto [stop, error] = std::from_chars(name.data() + file_prefix.size(), end, number);
    if (error == std::errc{} && stop == end) files.emplace_back(number, entry.path().string());
  }
  std::sort(files.begin(), files.end());
  const MutexLock lock(mutex_);
  for (const auto& [number, path] : files) {
    next_file_ = std::max(next_file_, number + 1);
    if (count_ == max_lanes) break;
    try {
      LaneMemory memory = LaneMemory::file(path, LaneMemory::head_bytes);
      LaneHead head{};
      std::memcpy(&head, memory.begin(), sizeof head);
      const std::uint64_t wanted =
          LaneMemory::head_bytes + std::uint64_t{head.chunk_bytes} * head.chunk_count;
      if (head.chunk_bytes < sizeof(ChunkHead) || head.chunk_count < 2 || wanted != memory.size()) {
        options_.log(LogLevel::error, "postrider: " + path + " is no ring of ours; it is left alone");
        continue;
      }
      auto lane = std::make_unique<Lane>(std::move(memory), head.chunk_bytes, head.chunk_count,
                                         (std::uint64_t{random_()} << 32U) | random_());
      recovered_ += lane->recovered();
      damaged_ += lane->damaged();
      lanes_[count_] = std::move(lane);
      count_.fetch_add(1, std::memory_order_release);
    } catch (const std::exception& error) {
      options_.log(LogLevel::error, "postrider: cannot take over " + path + ": " + what_of(error));
    }
  }
  if (recovered_ > 0) {
    options_.log(LogLevel::info, "postrider: " + counted(recovered_, "event") +
                                     " that the last process had accepted were found in its rings");
  }
}

Lane* LaneSet::find_mine() noexcept {
  if (thread_is_ending) return nullptr;
  try {
    thread_local ThreadLanes mine;
    auto& held = mine.held;
    auto found = std::find_if(held.begin(), held.end(), [&](const auto& each) { return each.id == id_; });
    if (found == held.end()) {
      std::erase_if(held, [](const auto& each) { return each.set.expired(); });
      held.reserve(held.size() + 1);
      Lane* const lane = acquire();
      if (lane == nullptr) return nullptr;
      held.push_back({id_, weak_from_this(), lane});
      found = held.end() - 1;
    }
    cached_set = id_;
    cached_lane = found->lane;
    return cached_lane;
  } catch (...) {
    return nullptr;  // out of memory: the event is counted as refused
  }
}

Lane* LaneSet::acquire() {
  const MutexLock lock(mutex_);
  const std::size_t count = count_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    bool expected = false;
    if (lanes_[i]->owned.compare_exchange_strong(expected, true, std::memory_order_acquire))
      return lanes_[i].get();
  }
  if (count == max_lanes) return nullptr;
  const auto chunk_bytes = static_cast<std::uint32_t>(options_.ring_bytes / chunks & ~std::size_t{4095});
  LaneMemory memory = new_memory(LaneMemory::head_bytes + std::size_t{chunk_bytes} * chunks);
  lanes_[count] = std::make_unique<Lane>(std::move(memory), chunk_bytes, chunks,
                                         (std::uint64_t{random_()} << 32U) | random_());
  lanes_[count]->owned = true;
  count_.store(count + 1, std::memory_order_release);
  return lanes_[count].get();
}

LaneMemory LaneSet::new_memory(std::size_t bytes) {
  if (!options_.mapped) return LaneMemory::anonymous(bytes);
  try {
    return LaneMemory::file(options_.folder + "/" + std::string(file_prefix) + std::to_string(next_file_++),
                            bytes);
  } catch (const std::exception& error) {
    // Better in memory than nowhere; but nobody shall believe that it would survive.
    ++fallbacks_;
    options_.log(LogLevel::error,
                 "postrider: a thread logs into plain memory, which kill -9 would take: " + what_of(error));
    return LaneMemory::anonymous(bytes);
  }
}

}  // namespace postrider::logger
