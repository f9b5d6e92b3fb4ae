// SPDX-License-Identifier: Apache-2.0
// A real peer on loopback, for tests.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "postrider/http_event_log_client.hpp"
#include "support/tls_identity.hpp"

namespace postrider::logger {

struct PeerRequest {
  std::string head;
  std::string body;
};

/// A connection, in plain text or with TLS.
class Channel {
 public:
  Channel(int socket, SSL_CTX* context) : socket_(socket) {
    if (context == nullptr) return;
    tls_.reset(::SSL_new(context));
    ::SSL_set_fd(tls_.get(), socket);
    ready_ = ::SSL_accept(tls_.get()) == 1;
  }
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] int socket() const { return socket_; }
  bool more(std::string& text) const {
    char bytes[4096];
    const ssize_t got =
        tls_ ? ::SSL_read(tls_.get(), bytes, sizeof bytes) : ::recv(socket_, bytes, sizeof bytes, 0);
    if (got > 0) text.append(bytes, static_cast<std::size_t>(got));
    return got > 0;
  }
  [[nodiscard]] bool write(const std::string& text) const {
    const ssize_t sent = tls_ ? ::SSL_write(tls_.get(), text.data(), static_cast<int>(text.size()))
                              : ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    return sent == static_cast<ssize_t>(text.size());
  }

 private:
  struct Deleter {
    void operator()(SSL* tls) const noexcept { ::SSL_free(tls); }
  };
  int socket_;
  std::unique_ptr<SSL, Deleter> tls_;
  bool ready_ = true;
};

/// A server on 127.0.0.1, one thread, one connection after the other; with TLS when it has an identity. Each
/// request is given to the handler, which returns the bytes to answer with; an empty answer cuts the
/// connection.
class Peer {
 public:
  using Handler = std::function<std::string(const PeerRequest&, int socket)>;

  explicit Peer(Handler handler, const test::TlsIdentity* identity = nullptr)
      : handler_(std::move(handler)), tls_(identity == nullptr ? nullptr : identity->server_context()) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ::ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~Peer() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    {
      const std::lock_guard lock(mutex_);
      if (connection_ >= 0) ::shutdown(connection_, SHUT_RDWR);
    }
    thread_.join();
    ::close(listener_);
  }

  [[nodiscard]] std::string url(const char* scheme = "http") const {
    return std::string(scheme) + "://127.0.0.1:" + std::to_string(port_);
  }
  [[nodiscard]] int connections() const { return connections_; }
  [[nodiscard]] bool stopping() const { return stopping_; }
  [[nodiscard]] std::vector<PeerRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  static std::string answer(int status, const std::string& body = "", const std::string& headers = "") {
    return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n" + headers + "\r\n" + body;
  }

 private:
  void run() {
    for (;;) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) return;
      {
        const std::lock_guard lock(mutex_);
        connection_ = socket;
        ++connections_;
        if (stopping_) ::shutdown(socket, SHUT_RDWR);
      }
      serve_all(socket);
      const std::lock_guard lock(mutex_);
      connection_ = -1;
      ::close(socket);
    }
  }
  void serve_all(int socket) {
    const Channel channel(socket, tls_.get());
    if (!channel.ready()) return;
    while (serve(channel)) {
    }
  }
  bool serve(const Channel& channel) {
    std::string text;
    std::size_t end = 0;
    while ((end = text.find("\r\n\r\n")) == std::string::npos) {
      if (!channel.more(text)) return false;
    }
    PeerRequest request{text.substr(0, end), text.substr(end + 4)};
    const std::size_t at = request.head.find("Content-Length: ");
    const std::size_t size = at == std::string::npos ? 0 : std::stoul(request.head.substr(at + 16));
    while (request.body.size() < size) {
      if (!channel.more(request.body)) return false;
    }
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    const std::string reply = handler_(request, channel.socket());
    return !reply.empty() && channel.write(reply);
  }

  Handler handler_;
  const test::TlsIdentity::Context tls_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> connections_{0};
  std::thread thread_;
  mutable std::mutex mutex_;
  int connection_ = -1;
  std::vector<PeerRequest> requests_;
};

inline const OutgoingEvent one{R"("step":"1","idempotencyKey":"k1")", "k1"};
inline const OutgoingEvent two{R"("step":"2","idempotencyKey":"k2")", "k2"};

/// What the Event Log API says to one event.
inline constexpr const char* created = R"({"id":"17","status":"created"})";

inline SendResult send_to(const std::string& url, std::vector<OutgoingEvent> events = {one},
                          HttpClientOptions options = {}) {
  options.base_url = url;
  if (options.request_timeout == HttpClientOptions{}.request_timeout)
    options.request_timeout = std::chrono::seconds{5};
  return HttpEventLogClient(options).send(events);
}

}  // namespace postrider::logger
