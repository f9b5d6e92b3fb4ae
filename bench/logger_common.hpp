// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "postrider/event_log_client.hpp"
#include "postrider/event_log_entry.hpp"

namespace postrider::bench {

/// Takes everything, at once.
class NullClient final : public EventLogClient {
 public:
  [[nodiscard]] SendResult send(std::span<const OutgoingEvent>) override { return {}; }
};

/// The event of the file format's description; its line has 322 bytes or a little more.
[[nodiscard]] EventLogEntry seed_entry();
/// As text, for loggers of text: the same number of bytes.
[[nodiscard]] std::string seed_line();
/// Empty, beside the program: the folder for temporary files is often memory.
[[nodiscard]] std::string scratch_folder(const std::string& name);
/// How often the calling thread has called operator new.
[[nodiscard]] std::uint64_t my_allocations() noexcept;

}  // namespace postrider::bench
