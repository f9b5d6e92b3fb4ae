// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/http/router.hpp"
#include "postrider/clock.hpp"
#include "postrider/log.hpp"

namespace postrider::http {

/// Everything that a client can make large or slow has a bound.
struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: the system chooses, `Server::port` tells
  std::size_t io_threads = 2;
  std::size_t write_workers = 2;
  std::size_t read_workers = 4;
  /// Requests that wait for a worker, per lane; beyond them the answer is 503.
  std::size_t queue_capacity = 256;
  /// Beyond them, connections wait to be accepted.
  std::size_t max_connections = 1024;
  /// Of all requests' and responses' bodies together; beyond it the answer is 503.
  std::size_t body_memory = 256U << 20U;
  std::size_t header_bytes = 16U << 10U;
  /// From the first byte of a request to the end of its header.
  Duration header_timeout = std::chrono::seconds{10};
  Duration body_timeout = std::chrono::seconds{30};
  /// For a handler to answer; then the client is told to try again, and the handler's answer is not used.
  /// Routes may have their own.
  Duration request_timeout = std::chrono::seconds{30};
  /// For a client to take a whole response.
  Duration write_timeout = std::chrono::seconds{30};
  /// Between two requests, and before the first.
  Duration idle_timeout = std::chrono::seconds{60};
  /// PEM files; both or none. Without them there is no TLS.
  std::string tls_certificate{};
  std::string tls_key{};
  /// What Host may say, without ports; empty: anything. Then Origin must say the same, with its port.
  std::vector<std::string> allowed_hosts{};
  /// What Origin may say besides: names of a proxy that asks by another Host.
  std::vector<std::string> public_hosts{};
  LogCallback log = log_to_stderr();
};

struct ServerStats {
  std::size_t connections = 0;
  std::size_t body_bytes = 0;
  std::uint64_t requests = 0;
  std::uint64_t late = 0;  ///< requests whose time was over before their handler had answered
};

/// An HTTP/1.1 server: keep-alive, pipelining (answered one after the other), chunked bodies. Sockets are
/// served by a few threads that never wait; handlers run on workers. Thread-safe, except for its end.
///
/// A `Reply` may outlive `stop`, but not the server.
class Server {
 public:
  /// Throws Error(invalid_argument) for options out of bounds.
  Server(Router router, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Listens from its return on. Throws Error(unavailable) when the address cannot be had.
  void start();
  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] ServerStats stats() const;
  /// Runs something short on one of the threads that serve sockets: to see whether they still do.
  void post(std::function<void()> task);
  /// Reads certificate and key again, for connections from now on. Throws Error(invalid_argument) for files
  /// that are none: then all stays as it is.
  void reload_tls();
  /// True from `stop` on: tell whoever asks for readiness.
  [[nodiscard]] bool stopping() const noexcept;
  /// Accepts no more, closes connections that rest, lets requests that have begun be answered, and cuts what
  /// is left when `drain` has passed. False when something had to be cut.
  bool stop(Duration drain);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace postrider::http
