// SPDX-License-Identifier: Apache-2.0
#include "support/cutting_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

namespace postrider::test {

namespace {

[[noreturn]] void fail_proxy(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in address(const std::string& host, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  if (::inet_pton(AF_INET, host == "localhost" ? "127.0.0.1" : host.c_str(), &result.sin_addr) != 1)
    fail_proxy("inet_pton");
  return result;
}

bool send_all(int socket, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// host:port of a URL.
std::string_view authority_of(std::string_view url) {
  std::size_t begin = url.find("://") + 3;
  if (const std::size_t at = url.find('@', begin); at != std::string_view::npos) begin = at + 1;
  return url.substr(begin, url.find('/', begin) - begin);
}

void no_delay(int socket) {
  const int on = 1;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

CuttingProxy::CuttingProxy(std::string host, std::uint16_t port)
    : host_(std::move(host)), server_port_(port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener_ < 0) fail_proxy("socket");
  sockaddr_in any = address("127.0.0.1", 0);
  socklen_t size = sizeof any;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&any), size) != 0) fail_proxy("bind");
  if (::listen(listener_, 64) != 0) fail_proxy("listen");
  if (::getsockname(listener_, reinterpret_cast<sockaddr*>(&any), &size) != 0) fail_proxy("getsockname");
  port_ = ntohs(any.sin_port);
  if (::pipe(wake_) != 0) fail_proxy("pipe");
  thread_ = std::thread([this] { serve(); });
}

CuttingProxy::~CuttingProxy() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
  ::close(listener_);
  ::close(wake_[0]);
  ::close(wake_[1]);
}

void CuttingProxy::cut_after(std::string pattern) {
  const MutexLock lock(mutex_);
  pattern_ = std::move(pattern);
}

void CuttingProxy::cut_all() {
  {
    const MutexLock lock(mutex_);
    cut_all_ = true;
  }
  wake();
}

void CuttingProxy::stall() {
  {
    const MutexLock lock(mutex_);
    stalled_ = true;
  }
  wake();
}

void CuttingProxy::resume() {
  {
    const MutexLock lock(mutex_);
    stalled_ = false;
  }
  wake();
}

int CuttingProxy::cuts() const {
  const MutexLock lock(mutex_);
  return cuts_;
}

void CuttingProxy::wake() {
  const char byte = 0;
  if (::write(wake_[1], &byte, 1) != 1) fail_proxy("write");
}

void CuttingProxy::accept_one() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to = address(host_, server_port_);
  if (server < 0 || ::connect(server, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    ::close(client);
    if (server >= 0) ::close(server);
    return;
  }
  no_delay(client);
  no_delay(server);
  links_.push_back({client, server});
}

bool CuttingProxy::forward_request(Link& link) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(link.client, buffer.data(), buffer.size(), 0);
  if (got <= 0) return false;
  {
    const MutexLock lock(mutex_);
    link.tail.append(buffer.data(), static_cast<std::size_t>(got));
    if (!pattern_.empty() && link.tail.find(pattern_) != std::string::npos) {
      link.doomed = true;
      pattern_.clear();
    }
  }
  if (link.tail.size() > 1024) link.tail.erase(0, link.tail.size() - 1024);
  return send_all(link.server, buffer.data(), static_cast<std::size_t>(got));
}

bool CuttingProxy::forward_answer(Link& link) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(link.server, buffer.data(), buffer.size(), 0);
  if (link.doomed) {
    const MutexLock lock(mutex_);
    ++cuts_;
    return false;
  }
  return got > 0 && send_all(link.client, buffer.data(), static_cast<std::size_t>(got));
}

void CuttingProxy::serve() {
  for (;;) {
    bool stalled = false;
    {
      const MutexLock lock(mutex_);
      stalled = stalled_;
    }
    // A negative number is passed over: while it is stalled only `wake` is heard.
    const auto heard = [&](int socket) { return pollfd{stalled ? -1 : socket, POLLIN, 0}; };
    std::vector<pollfd> waiting{{wake_[0], POLLIN, 0}, heard(listener_)};
    for (const Link& link : links_) {
      waiting.push_back(heard(link.client));
      waiting.push_back(heard(link.server));
    }
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
    if (waiting[0].revents != 0) {
      char byte = 0;
      (void)!::read(wake_[0], &byte, 1);
    }
    bool close_all = false;
    bool stop = false;
    {
      const MutexLock lock(mutex_);
      stop = stopping_;
      close_all = stop || std::exchange(cut_all_, false);
      if (close_all && !stop) cuts_ += static_cast<int>(links_.size());
    }
    std::vector<Link> open;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      Link& link = links_[i];
      const bool keep = !close_all && (waiting[2 + 2 * i].revents == 0 || forward_request(link)) &&
                        (waiting[3 + 2 * i].revents == 0 || forward_answer(link));
      if (keep) {
        open.push_back(std::move(link));
      } else {
        ::close(link.client);
        ::close(link.server);
      }
    }
    links_ = std::move(open);
    if (stop) return;
    if (waiting[1].revents != 0) accept_one();
  }
}

ServerAddress server_of(const std::string& url) {
  const std::string text(authority_of(url));
  const std::size_t colon = text.find(':');
  return {text.substr(0, colon), static_cast<std::uint16_t>(std::stoi(text.substr(colon + 1)))};
}

std::string url_through(const std::string& url, std::uint16_t port) {
  const std::string_view authority = authority_of(url);
  std::string result = url;
  return result.replace(static_cast<std::size_t>(authority.data() - url.data()), authority.size(),
                        "127.0.0.1:" + std::to_string(port));
}

}  // namespace postrider::test
