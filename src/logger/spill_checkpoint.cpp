// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "logger/checksum.hpp"

namespace postrider::logger {
namespace {

constexpr const char* checkpoint_name = "eventlog-spillover.checkpoint";
constexpr std::uint64_t magic = 0x32544b4350535250ULL;  // "PRSPCKT2"
constexpr std::uint64_t slot_distance = 512;            // a sector each: no write touches both

struct Slot {
  std::uint64_t magic = 0;
  std::uint64_t generation = 0;
  SpillCursor cursor;
  SpillMarks marks;
  std::uint64_t boot = 0;
  std::uint64_t sum = 0;
};
static_assert(sizeof(Slot) == 72 && std::is_trivially_copyable_v<Slot>);

std::string_view bytes_of(const Slot& slot, std::size_t size = sizeof(Slot)) {
  return {reinterpret_cast<const char*>(&slot), size};
}

std::uint64_t sum_of(const Slot& slot) {
  return checksum(bytes_of(slot, offsetof(Slot, sum)));
}

}  // namespace

std::optional<SpillCursor> SpillCheckpoint::load() {
  const SpillFile file(folder_, folder_.open(checkpoint_name, SpillFolder::Mode::read));
  if (!file.is_open() || folder_.mark(file.get(), file_mark_) != 0) return std::nullopt;
  std::optional<SpillCursor> newest;
  for (const std::uint64_t offset : {std::uint64_t{0}, slot_distance}) {
    std::array<char, sizeof(Slot)> bytes{};
    if (folder_.read_at(file.get(), bytes.data(), bytes.size(), offset) != std::int64_t{sizeof(Slot)})
      continue;
    Slot slot;
    std::memcpy(&slot, bytes.data(), sizeof slot);
    if (slot.magic != magic || slot.sum != sum_of(slot) || slot.generation < generation_) continue;
    generation_ = slot.generation;
    newest = slot.cursor;
    marks_ = slot.marks;
    // What was not synced has survived only as long as the machine has run on.
    const bool same_boot = slot.boot != 0 && slot.boot == boot_;
    known_end_ = same_boot ? std::max(slot.marks.written, slot.marks.synced) : slot.marks.synced;
  }
  return newest;
}

int SpillCheckpoint::store(const SpillCursor& cursor) {
  cursor_ = cursor;
  return write();
}

int SpillCheckpoint::store(const SpillMarks& marks) {
  if (marks == marks_) return 0;
  marks_ = marks;
  return write();
}

int SpillCheckpoint::refresh() {
  return generation_ == 0 || is_still(folder_, checkpoint_name, file_mark_) ? 0 : write();
}

int SpillCheckpoint::write() {
  // Another one in its place may have numbers of its own.
  const bool anew = generation_ > 0 && !is_still(folder_, checkpoint_name, file_mark_);
  if (anew) file_.reset();
  if (!file_.is_open()) file_ = SpillFile(folder_, folder_.open(checkpoint_name, SpillFolder::Mode::update));
  if (!file_.is_open()) return file_.get();
  if (file_mark_ == FileMark{} || anew) {
    int error = folder_.mark(file_.get(), file_mark_);
    if (error == 0 && anew) error = folder_.truncate(file_.get(), 0);
    if (error != 0) return error;
  }
  Slot slot{magic, generation_ + 1, cursor_, marks_, boot_, 0};
  slot.sum = sum_of(slot);
  const std::uint64_t offset = slot.generation % 2 == 0 ? 0 : slot_distance;
  const std::int64_t written = folder_.write_at(file_.get(), bytes_of(slot), offset);
  if (written != std::int64_t{sizeof slot}) return written < 0 ? static_cast<int>(written) : -EIO;
  generation_ = slot.generation;
  return 0;
}

}  // namespace postrider::logger
