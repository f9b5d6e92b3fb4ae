// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace postrider::test {

/// A port of this machine whose connections the kernel takes, and nobody ever answers.
class SilentPeer {
 public:
  SilentPeer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (socket_ < 0 || ::bind(socket_, generic, size) != 0 || ::listen(socket_, 16) != 0 ||
        ::getsockname(socket_, generic, &size) != 0) {
      throw std::system_error(errno, std::generic_category(), "a silent peer");
    }
    port_ = ntohs(address.sin_port);
  }
  ~SilentPeer() { ::close(socket_); }
  SilentPeer(const SilentPeer&) = delete;
  SilentPeer& operator=(const SilentPeer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Somebody waits for an answer.
  [[nodiscard]] bool has_visitor() const noexcept {
    pollfd ready{socket_, POLLIN, 0};
    return ::poll(&ready, 1, 0) == 1;
  }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

}  // namespace postrider::test
