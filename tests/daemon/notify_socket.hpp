// SPDX-License-Identifier: Apache-2.0
// systemd's side of sd_notify(3), for programs that think it has started them.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "support/temp_dir.hpp"

namespace postrider::test {

/// A datagram socket in a folder of its own. Used by one thread.
class NotifySocket {
 public:
  using Clock = std::chrono::steady_clock;

  NotifySocket() : path_(dir_.file("notify")), socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(static_cast<char*>(address.sun_path), path_.c_str(), sizeof address.sun_path - 1);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    if (socket_ < 0 || ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::system_error(errno, std::generic_category(), "cannot listen on " + path_);
    }
  }
  ~NotifySocket() { ::close(socket_); }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  /// What NOTIFY_SOCKET is to say.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Everything that was received.
  [[nodiscard]] const std::vector<std::string>& all() const noexcept { return all_; }

  /// The next message; empty when none comes until then.
  [[nodiscard]] std::optional<std::string> next(Clock::time_point until) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    pollfd wait{socket_, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) <= 0) return std::nullopt;
    std::array<char, 4096> buffer{};
    const ssize_t size = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (size < 0) return std::nullopt;
    return all_.emplace_back(buffer.data(), static_cast<std::size_t>(size));
  }
  /// Reads until a message begins like this, and returns it; empty when none does in time.
  [[nodiscard]] std::optional<std::string> await(std::string_view beginning,
                                                 std::chrono::milliseconds timeout = std::chrono::seconds{
                                                     60}) {
    const Clock::time_point until = Clock::now() + timeout;
    while (std::optional<std::string> message = next(until)) {
      if (message->starts_with(beginning)) return message;
    }
    return std::nullopt;
  }
  /// How many messages said just this so far.
  [[nodiscard]] std::size_t count(std::string_view message) const {
    std::size_t found = 0;
    for (const std::string& one : all_) found += one == message ? 1 : 0;
    return found;
  }

 private:
  TempDir dir_;
  std::string path_;
  int socket_;
  std::vector<std::string> all_;
};

}  // namespace postrider::test
