// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/wake_channel.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "postrider/error.hpp"
#include "storage/wake_thread.hpp"

namespace postrider::postgres {

namespace {

using namespace std::chrono_literals;

/// A connection that died without a word (a firewall, a pulled cable) is found out by asking now and then.
constexpr Duration silence = 30s;

/// Takes what has arrived; wakes once if there was anything. False when the connection is broken.
[[nodiscard]] bool take_signals(PGconn* native, WakeThread& thread) {
  bool any = false;
  while (PGnotify* const notification = PQnotifies(native)) {
    PQfreemem(notification);
    any = true;
  }
  if (any) thread.wake();
  return PQstatus(native) == CONNECTION_OK;
}

/// Waits for the next signals and passes them on as one. False when the connection has to be made anew.
[[nodiscard]] bool wait(Connection& connection, WakeThread& thread) {
  PGconn* const native = connection.native();
  if (!thread.poll_for(PQsocket(native), silence)) return connection.ping() && take_signals(native, thread);
  if (PQconsumeInput(native) == 0) {
    thread.complain(failure_of(nullptr, native).message);
    return false;
  }
  return take_signals(native, thread);
}

/// False when a pooler has put the LISTEN where we shall never hear of it.
[[nodiscard]] bool listen_on(const std::string& channel, ConnectionContext& context, WakeThread& thread) {
  Connection connection(context);
  if (context.unnamed_statements) {
    thread.say(LogLevel::info, context.name +
                                   " is reached through a transaction-mode pooler, which makes LISTEN "
                                   "useless: other nodes are heard of by polling alone");
    return false;
  }
  Pipeline pipeline(connection, "cannot listen for other nodes");
  pipeline.send_text("LISTEN " + channel, {});
  (void)pipeline.finish();
  thread.connected();
  while (!thread.stopping() && wait(connection, thread)) {
  }
  return true;
}

}  // namespace

std::string wake_channel_name(std::string_view schema, std::string_view topic) {
  const bool letters =
      !topic.empty() && std::all_of(topic.begin(), topic.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (!letters || topic.size() > 20) {
    throw Error(ErrorCode::invalid_argument,
                "cannot use the topic '" + std::string(topic) + "' to wake nodes",
                "it must be 1 to 20 lower-case letters");
  }
  constexpr std::size_t longest = 63;
  std::string name(schema);
  if (name.size() + 1 + topic.size() > longest) {
    // The hash keeps schemas apart that begin alike.
    std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
    for (const char c : schema) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    std::array<char, 24> text{};
    std::snprintf(text.data(), text.size(), "_%016llx", static_cast<unsigned long long>(hash));
    name.resize(longest - 1 - topic.size() - 17);
    name += text.data();
  }
  return name.append("_").append(topic);
}

PostgresWakeChannel::PostgresWakeChannel(const Identifier& schema, ConnectionContext& context,
                                         WithConnection with_connection)
    : schema_(schema.str()),
      context_(context),
      with_connection_(std::move(with_connection)),
      // A message is lost in a crash of the server anyway, so its commit need not wait for the disk.
      notify_("SELECT pg_notify($1::text, ''), set_config('synchronous_commit', 'off', true)",
              Statement::Use::plain) {}

void PostgresWakeChannel::notify(std::string_view topic) {
  const std::string name = wake_channel_name(schema_, topic);
  with_connection_([&](Connection& connection) {
    Params params;
    params.text(name);
    Pipeline pipeline(connection, "cannot wake other nodes");
    pipeline.send(notify_, params);
    (void)pipeline.finish();
  });
}

std::unique_ptr<WakeChannel::Subscription> PostgresWakeChannel::listen(std::string_view topic,
                                                                       std::function<void()> on_wake) {
  std::string channel = wake_channel_name(schema_, topic);
  return std::make_unique<WakeThread>(
      "channel " + channel, std::move(on_wake), context_.log,
      [channel, &context = context_](WakeThread& thread) { return listen_on(channel, context, thread); });
}

}  // namespace postrider::postgres
