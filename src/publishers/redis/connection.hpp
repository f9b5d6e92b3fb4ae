// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/clock.hpp"
#include "publishers/redis/settings.hpp"

struct redisReader;
struct redisReply;

namespace postrider::redis {

/// The connection is of no use any more, and why; caught by the sink.
struct Lost {
  std::string why;
};

/// A descriptor that is closed with its object.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return number_; }
  void reset(int number = -1) noexcept;

 private:
  int number_;
};

/// Ends, from any thread and for good, whatever waits on a connection.
class Alarm {
 public:
  Alarm();
  void ring() noexcept;
  [[nodiscard]] bool rings() const noexcept;
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }

 private:
  Descriptor event_;
};

/// Appends a command as it goes over the wire.
void append_command(std::string& out, const std::vector<std::string_view>& words);

/// A connection on which nothing waits longer than the given time. hiredis parses the answers; sending and
/// waiting are done here, because hiredis raises SIGPIPE, cannot be interrupted, and bounds single calls
/// instead of the whole. Used by one thread at a time.
class Connection {
 public:
  /// Connects; throws Lost. Both references must outlive the object.
  Connection(const Settings& settings, const Alarm& alarm, SteadyPoint until, Duration per_address);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  using OnReply = std::function<void(std::size_t index, const redisReply& reply)>;
  /// Sends commands and waits for so many replies, reading while it writes: an answer to the first ones is
  /// seen although the server takes no more. Throws Lost.
  void exchange(std::string_view commands, std::size_t replies, SteadyPoint until, const OnReply& on_reply);
  /// False when the server has ended a connection on which nothing was asked.
  [[nodiscard]] bool usable() const noexcept;

 private:
  struct FreeReader {
    void operator()(redisReader* reader) const noexcept;
  };
  void connect_socket(const Settings& settings, SteadyPoint until);
  void connect_host(const Settings& settings, SteadyPoint until, Duration per_address);
  /// Whether the address was reached; else errno says why.
  [[nodiscard]] bool reach(int family, const void* address, unsigned size, SteadyPoint until);
  /// Waits until the socket is ready; which of the events have come, none when the time is over. Throws Lost
  /// when the alarm rings.
  [[nodiscard]] short await(short events, SteadyPoint until);
  void write_some(std::string_view& rest);
  void read_some();

  const Alarm& alarm_;
  Descriptor socket_;
  std::unique_ptr<redisReader, FreeReader> reader_;
};

}  // namespace postrider::redis
