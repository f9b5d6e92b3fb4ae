// SPDX-License-Identifier: Apache-2.0
#include "support/free_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <stdexcept>

namespace postrider::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

template <class Call>
bool with_socket(std::uint16_t port, Call&& call) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  const sockaddr_in address = loopback(port);
  const bool done = call(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return done;
}

}  // namespace

std::uint16_t free_port() {
  std::random_device seed;  // programs that run at the same time look at different places
  std::uniform_int_distribution<int> some(20'000, 31'999);
  for (int i = 0; i < 1'000; ++i) {
    const auto port = static_cast<std::uint16_t>(some(seed));
    if (with_socket(port, ::bind)) return port;
  }
  throw std::runtime_error("no port of 127.0.0.1 is free");
}

bool accepts_connections(std::uint16_t port) {
  return with_socket(port, ::connect);
}

}  // namespace postrider::test
