// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logger/chunk_scan.hpp"
#include "logger/lane.hpp"

namespace postrider::logger {

/// A ring as it was before records had checksums. Its events are read, and moved into a ring of today's.
struct OldRing {
  struct Event {
    std::string packed;  // with its key in it, which a ring of today's would not give again
    std::int64_t stamp;
  };
  std::vector<Event> events;
  std::uint64_t damaged = 0;  ///< ends of chunks that cannot be read; how many events they had is not known

  [[nodiscard]] static OldRing read(const LaneMemory& memory, const RingShape& shape, const DamageSink& sink);
  /// Makes the file, which must not be there. Throws std::system_error; then nothing was made.
  void write(const std::string& path, std::uint32_t old_chunk_bytes, std::uint64_t run) const;
};

}  // namespace postrider::logger
