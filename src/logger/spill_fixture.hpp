// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "logger/spill_reader.hpp"
#include "logger/spill_store.hpp"
#include "support/sim_folder.hpp"

namespace postrider::logger {

/// The file that is written to.
inline constexpr const char* active = "eventlog-spillover.jsonl";

inline void silent(LogLevel, std::string_view) {}

inline std::string members_of(std::size_t number) {
  const std::string key = "key-" + std::to_string(number);
  return R"("applicationId":"a","details":"event )" + std::to_string(number) + R"(","idempotencyKey":")" +
         key + "\"";
}

/// Writes events `first` to `last`, each a write of its own. Returns those that the store has taken.
inline std::vector<std::string> write_events(SpillStore& store, std::size_t first, std::size_t last,
                                             bool sync = false) {
  std::vector<std::string> kept;
  for (std::size_t i = first; i <= last; ++i) {
    if (store.stage(members_of(i)) != SpillFull::no || store.write_staged() != 0) continue;
    kept.push_back("key-" + std::to_string(i));
    if (!sync) continue;
    for (std::uint64_t unkept = store.sync(); unkept > 0 && !kept.empty(); --unkept) kept.pop_back();
  }
  return kept;
}

struct ReadAll {
  std::vector<std::string> keys;
  std::uint64_t lost = 0;
  std::uint64_t quarantined = 0;
  std::uint64_t discarded = 0;
};

/// Reads and commits everything, in batches.
inline ReadAll read_all(SpillStore& store, std::size_t batch_size = 3) {
  ReadAll all;
  SpillReader reader(store);
  SpillBatch batch;
  // A reader that stops moving must fail, not hang.
  for (int rounds = 0; rounds < 100'000 && reader.read(batch, batch_size, 1 << 20); ++rounds) {
    for (const SpillBatch::Item& item : batch.items) all.keys.emplace_back(item.key);
    const SpillReader::Committed done = reader.commit(batch, batch.items.size());
    all.lost += done.lost;
    all.quarantined += done.quarantined;
    all.discarded += done.discarded;
  }
  return all;
}

inline std::vector<std::string> keys(std::size_t first, std::size_t last) {
  std::vector<std::string> all;
  for (std::size_t i = first; i <= last; ++i) all.push_back("key-" + std::to_string(i));
  return all;
}

inline constexpr SpillLimits small_segments{
    .max_events = 100'000, .max_bytes = 1 << 30, .segment_bytes = 600};

}  // namespace postrider::logger
