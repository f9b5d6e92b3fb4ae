// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace postrider::bench {

/// One kept-alive connection to loopback, as thin as it can be.
class HttpConnection {
 public:
  explicit HttpConnection(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail();
  }
  ~HttpConnection() { ::close(socket_); }
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  /// A batch of events, ready to be sent.
  [[nodiscard]] static std::string batch_request(const std::string& body) {
    return "POST /v1/events/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
           "Content-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  /// A request without a body, ready to be sent.
  [[nodiscard]] static std::string get_request(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }
  /// Sends a whole request and reads the whole answer, which must be 200.
  std::string exchange(std::string_view request) {
    while (!request.empty()) {
      const ssize_t sent = ::send(socket_, request.data(), request.size(), MSG_NOSIGNAL);
      if (sent <= 0) fail();
      request.remove_prefix(static_cast<std::size_t>(sent));
    }
    std::string answer;
    std::size_t whole = std::string::npos;
    std::array<char, 65536> part{};
    while (answer.size() < whole) {
      const ssize_t got = ::recv(socket_, part.data(), part.size(), 0);
      if (got <= 0) fail();
      answer.append(part.data(), static_cast<std::size_t>(got));
      const std::size_t head = answer.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      const std::size_t length = answer.find("Content-Length: ");
      whole = head + 4 + std::stoul(answer.substr(length + 16));
    }
    if (!answer.starts_with("HTTP/1.1 200")) fail();
    return answer;
  }
  /// A batch, of which every event must be taken.
  void post(std::string_view request) {
    if (exchange(request).find(R"("rejected":0)") == std::string::npos) fail();
  }

 private:
  [[noreturn]] static void fail() { throw std::runtime_error("the server did not answer 200"); }
  int socket_;
};

}  // namespace postrider::bench
