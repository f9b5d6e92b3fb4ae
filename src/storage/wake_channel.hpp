// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

namespace postrider {

/// What nodes tell each other about.
namespace wake_topic {
inline constexpr std::string_view queue = "queue";    ///< new events in the queue
inline constexpr std::string_view stream = "stream";  ///< new events in the event store
inline constexpr std::string_view relay = "relay";    ///< pairs were changed, or their leader has left
}  // namespace wake_topic

/// Lets nodes wake each other through the database. A hint only: signals may be lost, come late or for
/// nothing; whoever listens polls as well. Thread-safe.
class WakeChannel {
 public:
  virtual ~WakeChannel() = default;

  /// Ends the listening when destroyed; `on_wake` is not running any more then.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };

  /// Tells all nodes that listen to `topic` (lower-case letters), this one included. Never inside a user's
  /// transaction. Throws what a broken connection throws.
  virtual void notify(std::string_view topic) = 0;
  /// Calls `on_wake` on a thread of the subscription's, also after every (re)connection, because something
  /// may have been missed before. Returns at once; connects, and connects again, by itself.
  [[nodiscard]] virtual std::unique_ptr<Subscription> listen(std::string_view topic,
                                                             std::function<void()> on_wake) = 0;
};

}  // namespace postrider
