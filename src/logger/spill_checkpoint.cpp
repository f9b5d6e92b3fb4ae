// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_checkpoint.hpp"

#include <array>
#include <cstring>

#include "logger/checksum.hpp"

namespace postrider::logger {
namespace {

constexpr const char* name = "eventlog-spillover.checkpoint";
constexpr std::uint64_t magic = 0x31544b4350535250ULL;  // "PRSPCKT1"
constexpr std::uint64_t slot_distance = 512;            // a sector each: no write touches both

struct Slot {
  std::uint64_t magic = 0;
  std::uint64_t generation = 0;
  SpillCursor cursor;
  std::uint64_t sum = 0;
};
static_assert(sizeof(Slot) == 48 && std::is_trivially_copyable_v<Slot>);

std::string_view bytes_of(const Slot& slot, std::size_t size = sizeof(Slot)) {
  return {reinterpret_cast<const char*>(&slot), size};
}

std::uint64_t sum_of(const Slot& slot) {
  return checksum(bytes_of(slot, offsetof(Slot, sum)));
}

}  // namespace

std::optional<SpillCursor> SpillCheckpoint::load() {
  const SpillFile file(folder_, folder_.open(name, SpillFolder::Mode::read));
  if (!file.is_open()) return std::nullopt;
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
  }
  return newest;
}

bool SpillCheckpoint::store(const SpillCursor& cursor) {
  if (!file_.is_open()) file_ = SpillFile(folder_, folder_.open(name, SpillFolder::Mode::update));
  if (!file_.is_open()) return false;
  Slot slot{magic, generation_ + 1, cursor, 0};
  slot.sum = sum_of(slot);
  const std::uint64_t offset = slot.generation % 2 == 0 ? 0 : slot_distance;
  if (folder_.write_at(file_.get(), bytes_of(slot), offset) != std::int64_t{sizeof slot}) return false;
  generation_ = slot.generation;
  return true;
}

}  // namespace postrider::logger
