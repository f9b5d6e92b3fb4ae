// SPDX-License-Identifier: Apache-2.0
#include "publishers/redis/connection.hpp"

#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <new>
#include <system_error>

namespace postrider::redis {
namespace {

SteadyPoint now() {
  return Clock::system().steady_now();
}

std::string text_of_errno(int number) {
  return std::generic_category().message(number);
}

struct FreeReply {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};

void append_number(std::string& out, char mark, std::size_t number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out += mark;
  out.append(digits.data(), end);
  out += "\r\n";
}

}  // namespace

void Descriptor::reset(int number) noexcept {
  if (number_ >= 0) ::close(number_);
  number_ = number;
}

Alarm::Alarm() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_.get() < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

void Alarm::ring() noexcept {
  const std::uint64_t one = 1;
  // It fails only when it rings already.
  [[maybe_unused]] const ssize_t ignored = ::write(event_.get(), &one, sizeof one);
}

bool Alarm::rings() const noexcept {
  pollfd entry{event_.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

void append_command(std::string& out, const std::vector<std::string_view>& words) {
  append_number(out, '*', words.size());
  for (const std::string_view word : words) {
    append_number(out, '$', word.size());
    out += word;
    out += "\r\n";
  }
}

void Connection::FreeReader::operator()(redisReader* reader) const noexcept {
  redisReaderFree(reader);
}

Connection::Connection(const Settings& settings, const Alarm& alarm, SteadyPoint until, Duration per_address)
    : alarm_(alarm), reader_(redisReaderCreate()) {
  if (reader_ == nullptr) throw std::bad_alloc();
  if (settings.socket.empty()) {
    connect_host(settings, until, per_address);
  } else {
    connect_socket(settings, std::min(until, now() + per_address));
  }
}

Connection::~Connection() = default;

void Connection::connect_socket(const Settings& settings, SteadyPoint until) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, settings.socket.c_str(), settings.socket.size() + 1);
  if (!reach(AF_UNIX, &address, sizeof address, until)) {
    throw Lost{"cannot connect: " + text_of_errno(errno)};
  }
}

void Connection::connect_host(const Settings& settings, SteadyPoint until, Duration per_address) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(settings.host.c_str(), std::to_string(settings.port).c_str(), &wanted, &found);
  if (error != 0) throw Lost{"cannot resolve the host: " + std::string(::gai_strerror(error))};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  int why = 0;
  for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
    if (reach(one->ai_family, one->ai_addr, one->ai_addrlen, std::min(until, now() + per_address))) {
      const int on = 1;
      // Without these it works as well, only later.
      (void)::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
      return;
    }
    why = errno;
  }
  throw Lost{"cannot connect: " + text_of_errno(why)};
}

bool Connection::reach(int family, const void* address, unsigned size, SteadyPoint until) {
  socket_.reset(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket_.get() < 0) return false;
  if (::connect(socket_.get(), static_cast<const sockaddr*>(address), size) == 0) return true;
  if (errno != EINPROGRESS) return false;  // a Unix socket whose backlog is full says EAGAIN
  if (await(POLLOUT, until) == 0) {
    errno = ETIMEDOUT;
    return false;
  }
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return false;
  errno = error;
  return error == 0;
}

short Connection::await(short events, SteadyPoint until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now()).count();
    const auto wait = static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
    std::array<pollfd, 2> entries{pollfd{socket_.get(), events, 0}, pollfd{alarm_.descriptor(), POLLIN, 0}};
    const int ready = ::poll(entries.data(), entries.size(), wait);
    if (ready < 0 && errno != EINTR) throw Lost{"cannot wait: " + text_of_errno(errno)};
    if (ready > 0 && entries[1].revents != 0) throw Lost{"the sink is closed"};
    if (ready > 0) return entries[0].revents;
    if (now() >= until) return 0;
  }
}

void Connection::exchange(std::string_view commands, std::size_t replies, SteadyPoint until,
                          const OnReply& on_reply) {
  for (std::size_t got = 0; got < replies;) {
    void* parsed = nullptr;
    if (redisReaderGetReply(reader_.get(), &parsed) != REDIS_OK) {
      throw Lost{"cannot understand the answer: " + std::string(reader_->errstr)};
    }
    if (parsed != nullptr) {
      const std::unique_ptr<redisReply, FreeReply> reply(static_cast<redisReply*>(parsed));
      on_reply(got++, *reply);
      continue;
    }
    const short ready = await(static_cast<short>(commands.empty() ? POLLIN : POLLIN | POLLOUT), until);
    if (ready == 0) throw Lost{"no answer in time"};
    // Reading goes first: when a server answers and then hangs up, its answer says why.
    if ((ready & ~POLLOUT) != 0) {
      read_some();
    } else {
      write_some(commands);
    }
  }
}

void Connection::write_some(std::string_view& rest) {
  const ssize_t sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
  if (sent >= 0) {
    rest.remove_prefix(static_cast<std::size_t>(sent));
  } else if (errno == EPIPE || errno == ECONNRESET) {
    rest = {};  // what it has said before it went is still to be read
  } else if (errno != EINTR && errno != EAGAIN) {
    throw Lost{"cannot send: " + text_of_errno(errno)};
  }
}

void Connection::read_some() {
  std::array<char, 16'384> block{};
  const ssize_t got = ::recv(socket_.get(), block.data(), block.size(), 0);
  if (got == 0) throw Lost{"the server has closed the connection"};
  if (got < 0) {
    if (errno == EINTR || errno == EAGAIN) return;
    throw Lost{"the connection is broken: " + text_of_errno(errno)};
  }
  if (redisReaderFeed(reader_.get(), block.data(), static_cast<std::size_t>(got)) != REDIS_OK) {
    throw Lost{"cannot understand the answer: " + std::string(reader_->errstr)};
  }
}

bool Connection::usable() const noexcept {
  pollfd entry{socket_.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 0;  // an end, an error, or an answer that nobody has asked for
}

}  // namespace postrider::redis
