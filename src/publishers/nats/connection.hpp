// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nats/nats.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "postrider/clock.hpp"
#include "postrider/nats_sink.hpp"
#include "publishers/nats/settings.hpp"

namespace postrider::nats {

/// The connection is of no use, and why; caught by the sink.
struct Lost {
  std::string why;
};

struct Free {
  void operator()(natsOptions* options) const noexcept { natsOptions_Destroy(options); }
  void operator()(natsConnection* connection) const noexcept { natsConnection_Destroy(connection); }
  void operator()(natsSubscription* subscription) const noexcept { natsSubscription_Destroy(subscription); }
  void operator()(natsMsg* message) const noexcept { natsMsg_Destroy(message); }
  void operator()(jsCtx* context) const noexcept { jsCtx_Destroy(context); }
  void operator()(jsStreamInfo* info) const noexcept { jsStreamInfo_Destroy(info); }
  void operator()(char* inbox) const noexcept { natsInbox_Destroy(inbox); }
};
using Message = std::unique_ptr<natsMsg, Free>;

/// A connection that never comes back by itself: what the library sends again after it has reconnected could
/// arrive behind newer messages. Answers arrive at an inbox that is read by the thread that sends, so that no
/// thread of the library ever calls us. `close` may be called by any thread, the rest by one.
class Connection {
 public:
  /// Connects; throws Lost.
  Connection(const NatsSinkOptions& options, const Settings& settings, Duration timeout);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Makes the stream unless it is there. Throws Lost.
  void ensure_stream(const NatsSinkOptions& options, Duration timeout);
  /// A message whose answer comes to the inbox under this name. Throws std::bad_alloc.
  [[nodiscard]] Message make(const std::string& subject, std::string_view reply_name,
                             std::string_view body) const;
  [[nodiscard]] natsStatus publish(natsMsg& message) {
    return natsConnection_PublishMsg(connection_.get(), &message);
  }
  /// The next answer; null when none has come in time, with NATS_TIMEOUT.
  [[nodiscard]] natsStatus next(Message& answer, Duration timeout);
  /// Of the name under which an answer has come.
  [[nodiscard]] std::string_view reply_name(const natsMsg& answer) const;
  /// Whether the server has said that we may not publish or subscribe.
  [[nodiscard]] bool forbidden() const;
  [[nodiscard]] bool usable() const { return !natsConnection_IsClosed(connection_.get()); }
  void close() noexcept { natsConnection_Close(connection_.get()); }

 private:
  std::unique_ptr<natsConnection, Free> connection_;
  std::string inbox_;
  std::unique_ptr<natsSubscription, Free> answers_;
};

/// In whole milliseconds, at least one.
[[nodiscard]] std::int64_t milliseconds(Duration time);
[[nodiscard]] std::string text_of(natsStatus status);

}  // namespace postrider::nats
