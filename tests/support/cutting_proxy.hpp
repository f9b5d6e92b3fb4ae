// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "postrider/detail/sync.hpp"

namespace postrider::test {

/// A TCP proxy in front of a database server that can break connections at the worst moment: after a COMMIT
/// has reached the server and was carried out, before its answer gets back. Thread-safe; serves all
/// connections from one thread of its own.
class CuttingProxy {
 public:
  CuttingProxy(std::string host, std::uint16_t port);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  /// On 127.0.0.1.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  /// Once: the first connection that sends these bytes is cut as soon as the server answers them; the answer
  /// is dropped.
  void cut_after(std::string pattern);
  /// Cuts all connections now.
  void cut_all();
  /// From now on nothing is forwarded and nobody is connected to the server, but no connection ends: what a
  /// network that swallows packets, or a server that is stopped, looks like.
  void stall();
  /// Goes on, with what was held back.
  void resume();
  /// How many connections were cut so far.
  [[nodiscard]] int cuts() const;

 private:
  struct Link {
    int client;
    int server;
    std::string tail{};  // the last bytes sent, so that a pattern is found across two packets
    bool doomed = false;
  };

  void serve();
  void accept_one();
  /// False when the link is to be closed.
  [[nodiscard]] bool forward_request(Link& link);
  [[nodiscard]] bool forward_answer(Link& link);
  void wake();

  const std::string host_;
  const std::uint16_t server_port_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  std::vector<Link> links_;  // of the serving thread alone

  mutable Mutex mutex_;
  std::string pattern_ POSTRIDER_GUARDED_BY(mutex_);
  bool cut_all_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool stalled_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  int cuts_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

/// Where the server of a URL listens.
struct ServerAddress {
  std::string host;
  std::uint16_t port = 0;
};
[[nodiscard]] ServerAddress server_of(const std::string& url);
/// The same URL, but by way of this port on loopback.
[[nodiscard]] std::string url_through(const std::string& url, std::uint16_t port);

}  // namespace postrider::test
