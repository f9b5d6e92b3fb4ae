// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "postrider/cloud_events.hpp"
#include "postrider/sink.hpp"

namespace postrider::test {

/// A message as somebody else reads it, who knows nothing of this library.
struct Received {
  std::string key{};  ///< empty where the receiver has no such thing
  std::string content_type{};
  std::map<std::string, std::string> attributes{};  ///< of CloudEvents, without the transport's prefix
  std::map<std::string, std::string> headers{};     ///< all others
  std::string body{};

  [[nodiscard]] std::string id() const;  ///< from the attributes, or from the body in structured mode
};

struct SinkSettings {
  CloudEventsMode mode = CloudEventsMode::binary;
  Duration timeout = std::chrono::seconds{3};
  SinkLimits limits{.breaker_reset = std::chrono::milliseconds{200}};
};

/// The real thing on the other side of a sink: a broker on loopback that is ours alone. Each program of these
/// tests has one.
class Receiver {
 public:
  virtual ~Receiver() = default;

  /// A sink to it. The place that it sends to is the same for all sinks of one receiver, and was empty at
  /// first.
  [[nodiscard]] virtual std::shared_ptr<Sink> sink(const SinkSettings& settings) = 0;
  /// Everything that is there by now, in its order; read by another way than the sink's.
  [[nodiscard]] virtual std::vector<Received> received() = 0;

  /// False for what has no process of its own: the tests below are not for it.
  [[nodiscard]] virtual bool is_server() const { return true; }
  /// Whether the sink can send in this mode.
  [[nodiscard]] virtual bool speaks(CloudEventsMode) const { return true; }
  virtual void kill() {}    ///< SIGKILL
  virtual void start() {}   ///< on the same data and port; returns when it answers
  virtual void freeze() {}  ///< SIGSTOP
  virtual void thaw() {}
};

/// Fresh, running and empty. Defined once in each program.
[[nodiscard]] std::unique_ptr<Receiver> make_receiver();

}  // namespace postrider::test
