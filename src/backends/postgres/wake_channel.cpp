// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/wake_channel.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "postrider/error.hpp"

namespace postrider::postgres {

namespace {

using namespace std::chrono_literals;

constexpr Duration first_pause = 100ms;
constexpr Duration longest_pause = 10s;
/// A connection that died without a word (a firewall, a pulled cable) is found out by asking now and then.
constexpr Duration silence = 30s;

/// Something to poll for, besides the connection, that ends the waiting.
class StopSignal {
 public:
  StopSignal() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~StopSignal() { ::close(fd_); }
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  void raise() const noexcept {
    const std::uint64_t one = 1;
    // Can fail only when it was raised 2^64 times before.
    [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
  }
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

class Listener final : public WakeChannel::Subscription {
 public:
  Listener(ConnectionContext& context, std::string channel, std::function<void()> on_wake)
      : context_(context),
        channel_(std::move(channel)),
        on_wake_(std::move(on_wake)),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  ~Listener() override {
    thread_.request_stop();
    signal_.raise();
  }

 private:
  void run(const std::stop_token& stop) {
    Duration pause = first_pause;
    while (!stop.stop_requested()) {
      try {
        Connection connection(context_);
        if (!start_listening(connection)) {
          say_useless();
          wake();
          wait_for_stop(stop);
          return;
        }
        pause = first_pause;
        complained_ = false;
        wake();  // something may have been missed before
        while (!stop.stop_requested() && wait(connection)) {
        }
      } catch (const std::exception& error) {
        complain(error.what());
      }
      if (!stop.stop_requested()) (void)poll_for(-1, pause);
      pause = std::min(2 * pause, longest_pause);
    }
  }

  /// False when a pooler has put the LISTEN where we shall never hear of it.
  [[nodiscard]] bool start_listening(Connection& connection) {
    if (context_.unnamed_statements) return false;
    Pipeline pipeline(connection, "cannot listen for other nodes");
    pipeline.send_text("LISTEN " + channel_, {});
    (void)pipeline.finish();
    return true;
  }

  /// Waits for the next signals and passes them on as one. False when the connection has to be made anew.
  [[nodiscard]] bool wait(Connection& connection) {
    PGconn* const native = connection.native();
    if (!poll_for(PQsocket(native), silence)) return connection.ping() && take_signals(native);
    if (PQconsumeInput(native) == 0) {
      complain(failure_of(nullptr, native).message);
      return false;
    }
    return take_signals(native);
  }

  /// Takes what has arrived; wakes once if there was anything. False when the connection is broken.
  [[nodiscard]] bool take_signals(PGconn* native) {
    bool any = false;
    while (PGnotify* const notification = PQnotifies(native)) {
      PQfreemem(notification);
      any = true;
    }
    if (any) wake();
    return PQstatus(native) == CONNECTION_OK;
  }

  /// Waits for the socket (none: -1), the stop signal or the time. True when the socket has something.
  [[nodiscard]] bool poll_for(int socket, Duration longest) const {
    std::array<pollfd, 2> fds{pollfd{signal_.fd(), POLLIN, 0}, pollfd{socket, POLLIN, 0}};
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(longest).count();
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(millis));
    return ready > 0 && fds[1].revents != 0;
  }

  void wait_for_stop(const std::stop_token& stop) const {
    while (!stop.stop_requested()) (void)poll_for(-1, longest_pause);
  }

  void wake() noexcept {
    try {
      on_wake_();
    } catch (const std::exception& error) {
      if (context_.log) {
        context_.log(LogLevel::error,
                     "postrider: what " + channel_ + " was to wake has thrown: " + error.what());
      }
    }
  }

  void complain(const std::string& why) {
    // Once per outage; polling goes on without us.
    if (!std::exchange(complained_, true) && context_.log) {
      context_.log(LogLevel::warning,
                   "postrider: cannot hear of other nodes (channel " + channel_ + "), trying again: " + why);
    }
  }
  void say_useless() {
    if (context_.log) {
      context_.log(LogLevel::info, "postrider: " + context_.name +
                                       " is reached through a transaction-mode pooler, which makes LISTEN "
                                       "useless: other nodes are heard of by polling alone");
    }
  }

  ConnectionContext& context_;
  const std::string channel_;
  const std::function<void()> on_wake_;
  StopSignal signal_;
  bool complained_ = false;  // the thread's own
  std::jthread thread_;      // last: it uses all of the above, and its destructor waits for it
};

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
  return std::make_unique<Listener>(context_, wake_channel_name(schema_, topic), std::move(on_wake));
}

}  // namespace postrider::postgres
