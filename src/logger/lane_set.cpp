// SPDX-License-Identifier: Apache-2.0
#include "logger/lane_set.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/what_of.hpp"
#include "core/wording.hpp"
#include "logger/asymmetric_fence.hpp"
#include "logger/entry_json.hpp"
#include "logger/old_ring.hpp"

namespace postrider::logger {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view file_prefix = "eventlog-ring.";

/// The process may go to another folder, the files stay where they are.
LaneOptions in_full(LaneOptions options) {
  if (!options.folder.empty()) options.folder = fs::absolute(options.folder).string();
  return options;
}

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

LaneSet::LaneSet(LaneOptions options)
    : id_(next_set_id++), current_(id_), options_(in_full(std::move(options))) {}
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
  if (!files.empty()) next_file_ = files.back().first + 1;
  for (const auto& [number, path] : files) {
    if (count_ == max_lanes) {
      options_.log(LogLevel::error, "postrider: " + path + " is left to the next start: there are " +
                                        std::to_string(max_lanes) + " rings already");
      continue;
    }
    try {
      take_over(path);
    } catch (const std::exception& error) {
      options_.log(LogLevel::error, "postrider: cannot take over " + path + ": " + what_of(error));
    }
  }
  if (recovered_ > 0) {
    options_.log(LogLevel::info, "postrider: " + counted(recovered_, "event") +
                                     " that the last process had accepted were found in its rings");
  }
}

void LaneSet::take_over(const std::string& path) {
  auto memory = std::make_unique<LaneMemory>(LaneMemory::file(path, LaneMemory::head_bytes));
  RingShape shape = Lane::shape_of(*memory);
  std::string taken = path;
  if (shape.kind == RingShape::Kind::old) {
    taken = renew(path, *memory, shape);
    if (taken.empty()) return;
    memory = std::make_unique<LaneMemory>(LaneMemory::file(taken, LaneMemory::head_bytes));
    shape = Lane::shape_of(*memory);
  }
  if (shape.kind == RingShape::Kind::unfinished) {
    fs::remove(path);  // its process died while it made it
    return;
  }
  if (shape.kind != RingShape::Kind::ours || shape.chunk_bytes <= sizeof(ChunkHead) + sizeof(RecordHead) ||
      shape.chunk_bytes % 8 != 0 || shape.chunk_count < 2) {
    options_.log(LogLevel::error, "postrider: " + path +
                                      " is no ring that can be read; it is left as it is, and whether there "
                                      "are events in it is not known. Hint: look at it, then move it away");
    return;
  }
  const std::uint64_t wanted = LaneMemory::head_bytes + std::uint64_t{shape.chunk_bytes} * shape.chunk_count;
  if (memory->size() < wanted) {
    options_.log(LogLevel::error, "postrider: " + taken + " was cut off: it has " +
                                      counted(memory->size(), "byte") + " of " + std::to_string(wanted));
    memory = std::make_unique<LaneMemory>(LaneMemory::file(taken, wanted));
  }
  auto lane = std::make_unique<Lane>(
      std::move(*memory), shape.chunk_bytes, shape.chunk_count, new_run(),
      [&](std::uint64_t offset, std::string_view bytes) { set_aside(taken, offset, bytes); });
  if (lane->damaged() > 0 || lane->uncertain()) {
    options_.log(LogLevel::error,
                 "postrider: " + taken + " is damaged: " + counted(lane->damaged(), "event") + " lost" +
                     (lane->uncertain() ? ", perhaps more: their number cannot be known" : "") + "; " +
                     std::to_string(lane->recovered()) + " could be read");
  }
  recovered_ += lane->recovered();
  damaged_ += lane->damaged();
  lanes_[count_] = std::move(lane);
  count_.fetch_add(1, std::memory_order_release);
}

std::string LaneSet::renew(const std::string& path, const LaneMemory& memory, const RingShape& shape) {
  const OldRing old = OldRing::read(
      memory, shape, [&](std::uint64_t offset, std::string_view bytes) { set_aside(path, offset, bytes); });
  std::string renewed;
  if (!old.events.empty()) {
    renewed = options_.folder + "/" + std::string(file_prefix) + std::to_string(next_file_++);
    old.write(renewed, shape.chunk_bytes, new_run());
  }
  // Killed here, the events are in both files, with the same keys.
  fs::remove(path);
  damaged_ += old.damaged;
  options_.log(old.damaged > 0 ? LogLevel::error : LogLevel::info,
               "postrider: " + path + " was a ring of an older version, without checksums: " +
                   counted(old.events.size(), "event") + " taken over" +
                   (old.damaged > 0 ? ", and " + counted(old.damaged, "place") +
                                          " where it is damaged: how many events were there cannot be known"
                                    : ""));
  return renewed;
}

void LaneSet::set_aside(const std::string& path, std::uint64_t offset, std::string_view bytes) const {
  constexpr std::size_t most = 64 * 1024;
  constexpr std::string_view digits = "0123456789abcdef";
  if (!options_.quarantine) return;
  std::string line = R"({"ring":)";
  append_json_string(line, fs::path(path).filename().string());
  line +=
      R"(,"offset":)" + std::to_string(offset) + R"(,"size":)" + std::to_string(bytes.size()) + R"(,"hex":")";
  for (const char c : bytes.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    (line += digits[byte >> 4U]) += digits[byte & 15U];
  }
  options_.quarantine(line += R"("})");
}

std::uint64_t LaneSet::new_run() {
  return (std::uint64_t{random_()} << 32U) | random_();
}

Lane* LaneSet::find_mine() noexcept {
  if (thread_is_ending) return nullptr;
  try {
    thread_local ThreadLanes mine;
    auto& held = mine.held;
    const std::uint64_t current = current_.load(std::memory_order_acquire);  // before it is looked at
    auto found = std::find_if(held.begin(), held.end(),
                              [&](const auto& each) { return each.id == id_ && !each.lane->retired; });
    if (found == held.end()) {
      std::erase_if(held, [](const auto& each) { return each.set.expired(); });
      held.reserve(held.size() + 1);
      Lane* const lane = acquire();
      if (lane == nullptr) return nullptr;
      held.push_back({id_, weak_from_this(), lane});
      found = held.end() - 1;
    }
    cached_set = current;
    cached_lane = found->lane;
    return cached_lane;
  } catch (...) {
    return nullptr;  // out of memory: the event is counted as refused
  }
}

bool LaneSet::files_are_gone() const {
  bool gone = false;
  for_each([&](const Lane& lane) { gone = gone || (!lane.retired && lane.file_is_gone()); });
  return gone;
}

void LaneSet::replace_gone_files() {
  const MutexLock lock(mutex_);
  std::size_t gone = 0;
  std::uint64_t unseen = 0;
  for_each([&](Lane& lane) {
    if (lane.retired || !lane.file_is_gone()) return;
    lane.retired = true;
    unseen += lane.unseen();
    ++gone;
  });
  if (gone == 0) return;
  current_.store(next_set_id++, std::memory_order_release);
  options_.log(LogLevel::warning, "postrider: somebody removed " + counted(gone, "ring file") + " from " +
                                      options_.folder + " while in use, with " + counted(unseen, "event") +
                                      " that kill -9 would take now; the next events go into new files");
}

Lane* LaneSet::shared() noexcept {
  try {
    if (shared_ == nullptr || shared_->retired) shared_ = acquire(max_lanes);
  } catch (...) {
    // Out of memory: the event is counted as refused.
  }
  return shared_;
}

Lane* LaneSet::acquire(std::size_t most) {
  const MutexLock lock(mutex_);
  const std::size_t count = count_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    bool expected = false;
    if (lanes_[i]->retired) continue;
    if (lanes_[i]->owned.compare_exchange_strong(expected, true, std::memory_order_acquire))
      return lanes_[i].get();
  }
  if (count >= most) return nullptr;
  const auto chunk_bytes = static_cast<std::uint32_t>(options_.ring_bytes / chunks & ~std::size_t{4095});
  LaneMemory memory = new_memory(LaneMemory::head_bytes + std::size_t{chunk_bytes} * chunks);
  lanes_[count] = std::make_unique<Lane>(std::move(memory), chunk_bytes, chunks, new_run());
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
