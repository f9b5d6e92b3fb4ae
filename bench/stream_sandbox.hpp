// SPDX-License-Identifier: Apache-2.0
// An event store of a given size, and the events that the benchmarks append.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bare_stream.hpp"
#include "sandbox.hpp"
#include "storage/stream_keys.hpp"

namespace postrider::bench {

class StreamSandbox {
 public:
  StreamSandbox(BackendKind kind, const std::string& schema) : sandbox_(kind, schema, 4) {}

  [[nodiscard]] Storage& storage() { return sandbox_.storage(); }
  /// Adds events by plain SQL: five entries each in event_tags, as two tags make them. `hot_every` of them
  /// has the tag hot=1 (its type is "Other"); 0: none.
  void seed(std::size_t events, std::size_t hot_every = 0);
  [[nodiscard]] std::unique_ptr<BareAppender> bare();

  /// 128 bytes of data and two tags; `wallet` is one caller's own.
  [[nodiscard]] static AppendEvent event(const std::string& wallet, std::size_t number);
  [[nodiscard]] static BareStreamRow row(const std::string& wallet, std::size_t number);
  /// The condition of one caller.
  [[nodiscard]] static Query own(const std::string& wallet);

 private:
  Sandbox sandbox_;
  std::size_t seeded_ = 0;
};

}  // namespace postrider::bench
