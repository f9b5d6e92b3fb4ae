// SPDX-License-Identifier: Apache-2.0
// A client that sends bytes as they are, to say to a server what no HTTP library would say.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace postrider::test {

struct HttpAnswer {
  int status = 0;
  std::string head;
  std::string body;

  /// The value of a header, empty when it is not there. The name as the server writes it.
  [[nodiscard]] std::string header(const std::string& name) const {
    const std::size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return {};
    const std::size_t from = at + name.size() + 4;
    return head.substr(from, head.find("\r\n", from) - from);
  }
};

/// A connection to loopback. Nothing waits longer than ten seconds.
class SocketClient {
 public:
  explicit SocketClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  SocketClient(SocketClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        connected_(other.connected_),
        buffer_(std::move(other.buffer_)) {}
  SocketClient& operator=(SocketClient&&) = delete;
  ~SocketClient() { close(); }

  [[nodiscard]] bool connected() const { return connected_; }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  /// False when the server does not take it any more.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      if (!ready(POLLOUT)) return false;
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// The head of the next answer, with the line break of its last line; nothing when the connection ended
  /// before.
  [[nodiscard]] std::optional<std::string> head() {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return std::nullopt;
    }
    std::string text = buffer_.substr(0, end + 2);
    buffer_.erase(0, end + 4);
    return text;
  }
  /// The next answer; nothing when the connection ended before it was whole.
  [[nodiscard]] std::optional<HttpAnswer> answer() {
    HttpAnswer result;
    std::optional<std::string> top = head();
    if (!top.has_value()) return std::nullopt;
    result.head = std::move(*top);
    std::from_chars(result.head.data() + 9, result.head.data() + 12, result.status);
    const std::string length = result.header("Content-Length");
    const std::size_t bytes = length.empty() ? 0 : std::stoul(length);
    while (buffer_.size() < bytes) {
      if (!fill()) return std::nullopt;
    }
    result.body = buffer_.substr(0, bytes);
    buffer_.erase(0, bytes);
    return result;
  }
  /// The next bytes up to these, and with them; nothing when the connection ended before.
  [[nodiscard]] std::optional<std::string> until(std::string_view end) {
    std::size_t at = 0;
    while ((at = buffer_.find(end)) == std::string::npos) {
      if (!fill()) return std::nullopt;
    }
    std::string text = buffer_.substr(0, at + end.size());
    buffer_.erase(0, at + end.size());
    return text;
  }
  /// True when the server has closed the connection, and sent nothing more before.
  [[nodiscard]] bool at_end() {
    while (buffer_.empty()) {
      if (!fill()) return ended_;
    }
    return false;
  }

  std::optional<HttpAnswer> ask(std::string_view method, const std::string& target,
                                const std::string& body = {}, const std::string& headers = {}) {
    std::string text = std::string(method) + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers;
    if (method == "POST" && headers.find("Content-Type") == std::string::npos) {
      text += "Content-Type: application/json\r\n";
    }
    if (method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    if (!send(text + "\r\n" + body)) return std::nullopt;
    return answer();
  }

 private:
  [[nodiscard]] bool ready(short events) const {
    pollfd waiting{.fd = socket_, .events = events, .revents = 0};
    return ::poll(&waiting, 1, 10'000) == 1;
  }
  bool fill() {
    if (!ready(POLLIN)) return false;
    char bytes[16384];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    if (got > 0) buffer_.append(bytes, static_cast<std::size_t>(got));
    ended_ = got <= 0;
    return got > 0;
  }

  int socket_;
  bool connected_ = false;
  bool ended_ = false;
  std::string buffer_;
};

}  // namespace postrider::test
