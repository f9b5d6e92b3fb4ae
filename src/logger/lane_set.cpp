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
#include "logger/spill_names.hpp"
#include "postrider/error.hpp"

namespace postrider::logger {

namespace fs = std::filesystem;

namespace {

// From here on names begin with 0 again. Whoever counts from a number that somebody made up comes to its end.
constexpr std::uint64_t file_numbers = 1'000'000;
// So many rings of ended threads may be full of what nobody takes before the next thread has to be content
// with one of them: a program that makes a thread for each request would otherwise fill the memory with them.
constexpr std::size_t most_left_full = 64;

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

template <class Suits>
Lane* LaneSet::take_free(const Suits& suits) {
  const std::size_t count = count_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    Lane& lane = *lanes_[i];
    bool expected = false;
    if (!lane.owned && suits(lane) &&
        lane.owned.compare_exchange_strong(expected, true, std::memory_order_acquire))
      return &lane;
  }
  return nullptr;
}

template <class Make>
auto LaneSet::make_file(const Make& make) {
  for (std::size_t tries = 0;; ++tries) {
    try {
      auto made = make(options_.folder + "/" + std::string(ring_prefix) + std::to_string(next_file_));
      next_file_ = (next_file_ + 1) % file_numbers;
      return made;
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::file_exists || tries == 2 * max_lanes) throw;
      next_file_ = (next_file_ + 1) % file_numbers;
    }
  }
}

void LaneSet::take_over_files() {
  std::vector<std::pair<std::uint64_t, std::string>> files;
  for (const auto& entry : fs::directory_iterator(options_.folder)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t number = ~std::uint64_t{0};  // stays so when it is larger than that
    const char* const end = name.data() + name.size();
    if (!name.starts_with(ring_prefix)) continue;
    const auto [stop, error] = std::from_chars(name.data() + ring_prefix.size(), end, number);
    if (error != std::errc::invalid_argument && stop == end)
      files.emplace_back(number, entry.path().string());
  }
  std::sort(files.begin(), files.end());
  const MutexLock lock(mutex_);
  for (const auto& [number, path] : files) {
    if (number < file_numbers) next_file_ = (number + 1) % file_numbers;
  }
  for (const auto& [number, path] : files) {
    if (count_ == max_lanes) {
      options_.log(LogLevel::error, "postrider: " + path + " is left to the next start: there are " +
                                        std::to_string(max_lanes) + " rings already");
      continue;
    }
    try {
      take_over(path);
    } catch (const Error&) {
      throw;  // in use: see `open_spill_folder`
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
    memory.reset();  // its lock is in our own way
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
    memory.reset();
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
  if (!has_our_size(*lane) && lane->recovered() == 0 && lane->damaged() == 0 && !lane->uncertain()) {
    fs::remove(taken);  // `ring_bytes` is another one now
    return;
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
    const std::uint64_t run = new_run();
    renewed = make_file([&](const std::string& made) {
      old.write(made, shape.chunk_bytes, run);
      return made;
    });
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
      std::erase_if(held, [&](const auto& each) {
        if (each.id != id_) return each.set.expired();
        each.lane->owned.store(false, std::memory_order_release);  // it is retired
        return true;
      });
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

void LaneSet::unlock_files() noexcept {
  for_each([](Lane& lane) { lane.unlock_file(); });
}

std::uint64_t LaneSet::fallbacks() const noexcept {
  std::uint64_t count = 0;
  if (!options_.mapped) return count;
  for_each(
      [&](const Lane& lane) { count += !lane.in_file() && (!lane.retired || lane.unseen() > 0) ? 1 : 0; });
  return count;
}

void LaneSet::leave_plain_memory() {
  const MutexLock lock(mutex_);
  const auto in_use = [&](const Lane& lane) { return !lane.in_file() && !lane.retired; };
  std::size_t plain = 0;
  std::size_t free = 0;
  for_each([&](const Lane& lane) {
    plain += in_use(lane) ? 1 : 0;
    free += lane.in_file() && !lane.retired && !lane.owned && !lane.crowded() ? 1 : 0;
  });
  // Nobody is moved before there is a file to go to: else each of these tries would cost another lane.
  const auto another = [&]() POSTRIDER_REQUIRES(mutex_) {
    if (free == 0 && add_spare_file()) ++free;
    return free > 0;
  };
  if (!options_.mapped || plain == 0 || !another()) return;
  std::size_t moved = 0;
  const std::size_t count = count_;
  for (std::size_t i = 0; i < count; ++i) {
    Lane& lane = *lanes_[i];
    if (!in_use(lane)) continue;
    if (lane.owned) {
      if (!another()) break;
      --free;
      ++moved;
    }
    lane.retired = true;
  }
  if (moved == 0) return;
  current_.store(next_set_id++, std::memory_order_release);
  options_.log(LogLevel::info, "postrider: ring files can be made again in " + options_.folder + ": " +
                                   counted(moved, "thread") +
                                   " that logged into plain memory will use them with the next event");
}

Lane* LaneSet::shared() noexcept {
  try {
    if (shared_ != nullptr && !shared_->retired) return shared_;
    if (shared_ != nullptr) shared_->owned.store(false, std::memory_order_release);
    shared_ = nullptr;
    shared_ = acquire(max_lanes);
  } catch (...) {
    // Out of memory: the event is counted as refused.
  }
  return shared_;
}

Lane* LaneSet::acquire(std::size_t most) {
  const MutexLock lock(mutex_);
  std::size_t full = 0;
  Lane* const best = take_free([&](const Lane& lane) {
    if (lane.retired || !has_our_size(lane) || (options_.mapped && !lane.in_file())) return false;
    const bool crowded = lane.crowded();
    full += crowded ? 1 : 0;
    return !crowded;
  });
  if (best != nullptr) return best;
  // While the watch has left one, files cannot be made: not each new thread has to find that out.
  Lane* const plain = take_free([&](const Lane& lane) {
    return options_.mapped && !lane.retired && !lane.in_file() && !lane.crowded();
  });
  if (plain != nullptr) return plain;
  if (count_ < most && full < most_left_full) return take_new();
  Lane* const any = take_free([](const Lane& lane) { return !lane.retired; });
  return any == nullptr && count_ < most ? take_new() : any;
}

Lane* LaneSet::take_new() {
  if (!options_.mapped) return add(LaneMemory::anonymous(lane_bytes()), true);
  try {
    return add(new_file(), true);
  } catch (const std::exception& error) {
    // One of another size survives at least.
    Lane* const other =
        take_free([](const Lane& lane) { return !lane.retired && lane.in_file() && !lane.crowded(); });
    if (other != nullptr) return other;
    // Better in memory than nowhere; but nobody shall believe that it would survive.
    options_.log(LogLevel::error,
                 "postrider: a thread logs into plain memory, which kill -9 would take, until its ring file "
                 "can be made: " +
                     what_of(error));
    return take_plain();
  }
}

Lane* LaneSet::take_plain() {
  Lane* const left = take_free([](const Lane& lane) { return !lane.in_file() && !lane.crowded(); });
  if (left == nullptr) return add(LaneMemory::anonymous(lane_bytes()), true);
  left->retired = false;
  return left;
}

Lane* LaneSet::add(LaneMemory memory, bool owned) {
  const std::size_t count = count_.load(std::memory_order_relaxed);
  lanes_[count] = std::make_unique<Lane>(std::move(memory), chunk_bytes(), chunks, new_run());
  lanes_[count]->owned = owned;
  count_.store(count + 1, std::memory_order_release);
  return lanes_[count].get();
}

bool LaneSet::add_spare_file() {
  if (count_ == max_lanes) return false;
  try {
    add(new_file(), false);
    return true;
  } catch (const std::exception&) {
    return false;  // told when the thread had to do without
  }
}

LaneMemory LaneSet::new_file() {
  return make_file([&](const std::string& path) { return LaneMemory::new_file(path, lane_bytes()); });
}

}  // namespace postrider::logger
