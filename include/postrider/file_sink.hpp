// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "postrider/cloud_events.hpp"
#include "postrider/sink.hpp"

namespace postrider {

struct FileSinkOptions {
  std::string name = "file";
  /// One line of JSON per event is appended here. Its folder must exist. A file with this name that somebody
  /// else has moved away or removed is made anew.
  std::string path{};
  /// A file that has reached this size is renamed to `path.1`, `path.2`, … before the next batch.
  std::size_t max_bytes = std::size_t{64} << 20U;  ///< 1 KiB to 1 TiB
  /// How many renamed files stay; the oldest is deleted. 0: all.
  std::size_t keep = 0;  ///< up to 1,000,000
  /// Whether a batch counts as sent only when the disk has it. Without it a power cut may lose what was sent.
  bool sync = true;
  std::string source = "/postrider";  ///< see CloudEventsOptions
  SinkLimits limits{};
};

/// Events as CloudEvents in structured mode, one per line (JSONL), with the mode 0600. A batch that does not
/// fit on the disk is taken back and tried again; a line that a crash has cut is removed before the next
/// batch.
///
/// Several processes and sinks of one machine may have the same path: each batch is written under a lock
/// (flock), which is not held in between, so that another node goes on where one has stopped to lead. Who
/// finds it locked waits half a second, then is `unavailable` and tries again. Give them the same `max_bytes`
/// and `keep`.
[[nodiscard]] std::shared_ptr<Sink> file_sink(FileSinkOptions options);

}  // namespace postrider
