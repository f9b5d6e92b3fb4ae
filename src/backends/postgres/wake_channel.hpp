// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "backends/postgres/connection.hpp"
#include "postrider/identifier.hpp"
#include "storage/wake_channel.hpp"

namespace postrider::postgres {

/// Nodes wake each other by LISTEN and NOTIFY. Each subscription has a connection of its own, beside the
/// pool, and one thread. Behind a pooler in transaction mode LISTEN does nothing: the subscription says so
/// once in the log and then rests; NOTIFY still reaches those who listen directly.
class PostgresWakeChannel final : public WakeChannel {
 public:
  /// Lends a connection of the pool to `work`.
  using WithConnection = std::function<void(const std::function<void(Connection&)>& work)>;

  /// `context` must outlive this and all subscriptions.
  PostgresWakeChannel(const Identifier& schema, ConnectionContext& context, WithConnection with_connection);

  void notify(std::string_view topic) override;
  [[nodiscard]] std::unique_ptr<Subscription> listen(std::string_view topic,
                                                     std::function<void()> on_wake) override;

 private:
  std::string schema_;
  ConnectionContext& context_;
  WithConnection with_connection_;
  Statement notify_;
};

/// `schema_topic`, shortened where the server would cut it off: it takes 63 bytes. Throws
/// Error(invalid_argument) unless the topic consists of lower-case letters.
[[nodiscard]] std::string wake_channel_name(std::string_view schema, std::string_view topic);

}  // namespace postrider::postgres
