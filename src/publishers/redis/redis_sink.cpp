// SPDX-License-Identifier: Apache-2.0
#include "postrider/redis_sink.hpp"

#include <hiredis/hiredis.h>

#include <optional>
#include <utility>

#include "core/option_check.hpp"
#include "core/wording.hpp"
#include "publishers/name_template.hpp"
#include "publishers/redis/connection.hpp"
#include "publishers/redis/refusal.hpp"

namespace postrider {
namespace {

using redis::Connection;
using redis::Lost;
using redis::Refusal;

/// Of one transaction. Servers bound what a client may have queued, by 1 MiB at least.
constexpr std::size_t transaction_bytes = std::size_t{1} << 20U;

std::string_view text_of(const redisReply& reply) {
  return {reply.str, reply.len};
}

bool failed(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ERROR;
}

class RedisSink final : public Sink {
 public:
  RedisSink(RedisSinkOptions options, redis::Settings settings, NameTemplate stream)
      : options_(std::move(options)), settings_(std::move(settings)), stream_(std::move(stream)) {
    if (options_.max_len != 0) max_len_ = std::to_string(options_.max_len);
  }

  /// The guard before it lets one caller in at a time.
  PublishResult send(std::span<const SinkMessage> messages) override {
    const SteadyPoint until = Clock::system().steady_now() + options_.timeout;
    std::size_t done = 0;
    std::size_t end = messages.size();  // in front of a message that the server refuses
    std::string refused;
    while (done < end) {
      try {
        if (std::optional<Refusal> no = ready(until)) return unavailable(done, no->reason);
        const std::size_t some = encode(messages.subspan(done, end - done));
        const Outcome outcome = commit(some, until);
        done += outcome.count;
        if (!outcome.refusal) continue;
        if (outcome.refusal->reconnect) connection_.reset();
        if (!outcome.refusal->of_the_event) return unavailable(done, outcome.refusal->reason);
        // Nothing of the transaction was carried out: what stands before the refused one goes alone.
        end = done + outcome.at;
        refused = outcome.refusal->reason;
      } catch (const Lost& lost) {
        // What the server has received already it may still carry out, even after this end is closed: all of
        // a transaction or none. It cannot come between newer messages, for a retry begins with the same.
        connection_.reset();
        return unavailable(done, lost.why);
      }
    }
    return end == messages.size() ? PublishResult::all() : PublishResult::refused(end, place() + refused);
  }
  const std::string& name() const noexcept override { return options_.name; }
  void close() noexcept override { alarm_.ring(); }

 private:
  /// Of a transaction: how many are safe, and what is wrong with the one at `at`.
  struct Outcome {
    std::size_t count = 0;
    std::size_t at = 0;
    std::optional<Refusal> refusal{};

    void refuse(std::size_t where, Refusal why) {
      if (refusal) return;  // what follows the first error is its consequence
      at = where;
      refusal = std::move(why);
    }
  };

  [[nodiscard]] std::string place() const { return settings_.place() + ": "; }
  [[nodiscard]] PublishResult unavailable(std::size_t count, const std::string& why) const {
    return PublishResult::unavailable(count, place() + why);
  }

  /// A connection that may write. Throws Lost.
  std::optional<Refusal> ready(SteadyPoint until) {
    if (alarm_.rings()) throw Lost{"the sink is closed"};
    if (connection_ && connection_->usable()) return std::nullopt;
    connection_.reset();
    connection_.emplace(settings_, alarm_, until, options_.connect_timeout);
    std::optional<Refusal> refusal = log_in(until);
    if (refusal) connection_.reset();
    return refusal;
  }
  std::optional<Refusal> log_in(SteadyPoint until) {
    request_.clear();
    std::size_t commands = 0;
    const auto add = [&](const std::vector<std::string_view>& words) {
      redis::append_command(request_, words);
      ++commands;
    };
    const bool login = !settings_.password.empty() || !settings_.username.empty();
    if (login && settings_.username.empty()) add({"AUTH", settings_.password});
    if (login && !settings_.username.empty()) add({"AUTH", settings_.username, settings_.password});
    const std::string database = std::to_string(settings_.database);
    if (settings_.database != 0) add({"SELECT", database});
    // Where MULTI is refused, the XADDs behind it would be carried out nevertheless, at each retry again.
    add({"MULTI"});
    add({"EXEC"});
    std::optional<Refusal> refusal;
    connection_->exchange(request_, commands, until, [&](std::size_t index, const redisReply& reply) {
      if (!failed(reply) || refusal) return;
      refusal =
          login && index == 0 ? redis::login_refusal_of(text_of(reply)) : redis::refusal_of(text_of(reply));
    });
    request_.clear();
    return refusal;
  }

  /// Makes a transaction of the first of them; of how many.
  std::size_t encode(std::span<const SinkMessage> messages) {
    request_.clear();
    redis::append_command(request_, {"MULTI"});
    std::size_t count = 0;
    for (const SinkMessage& message : messages) {
      const std::size_t before = request_.size();
      append_xadd(message);
      if (count != 0 && request_.size() > transaction_bytes) {
        request_.resize(before);
        break;
      }
      ++count;
    }
    redis::append_command(request_, {"EXEC"});
    if (options_.wait_replicas != 0) {
      const std::string replicas = std::to_string(options_.wait_replicas);
      const std::string time =
          std::to_string(std::chrono::ceil<std::chrono::milliseconds>(options_.wait_timeout).count());
      redis::append_command(request_, {"WAIT", replicas, time});
    }
    return count;
  }
  void append_xadd(const SinkMessage& message) {
    event_.fill(message, options_.cloud_events);
    stream_.render(message, key_);
    names_.clear();
    for (const CloudEvent::Attribute& one : event_.attributes()) prefixed("ce_", one.name);
    // In structured mode the id stands in the body alone, where nobody wants to look for repeats.
    if (event_.attributes().empty()) prefixed("ce_", "id");
    for (const CloudEvent::Header& one : event_.headers()) prefixed("h_", one.name);

    words_.assign({"XADD", key_});
    if (!max_len_.empty()) words_.insert(words_.end(), {"MAXLEN", "~", max_len_});
    words_.emplace_back("*");
    if (!event_.key().empty()) words_.insert(words_.end(), {"key", event_.key()});
    words_.insert(words_.end(), {"content-type", event_.content_type()});
    std::string_view names = names_;
    const auto add = [&](std::string_view value) {
      const std::size_t end = names.find('\0');
      words_.insert(words_.end(), {names.substr(0, end), value});
      names.remove_prefix(end + 1);
    };
    for (const CloudEvent::Attribute& one : event_.attributes()) add(one.value);
    if (event_.attributes().empty()) add(event_.id());
    for (const CloudEvent::Header& one : event_.headers()) add(one.value);
    words_.insert(words_.end(), {"data", event_.body()});
    redis::append_command(request_, words_);
  }
  /// All names in one buffer, which has its full size before anybody points into it.
  void prefixed(std::string_view prefix, std::string_view name) {
    names_ += prefix;
    names_ += name;
    names_ += '\0';
  }

  /// Sends what `encode` has made. Throws Lost.
  Outcome commit(std::size_t count, SteadyPoint until) {
    Outcome outcome;
    const std::size_t exec = count + 1;
    const std::size_t replies = options_.wait_replicas == 0 ? exec + 1 : exec + 2;
    try {
      connection_->exchange(request_, replies, until, [&](std::size_t index, const redisReply& reply) {
        if (failed(reply)) {
          if (index > exec) outcome.count = 0;
          // Of MULTI: the first stands for it, as nothing of the batch was done.
          outcome.refuse(index == 0 ? 0 : index - 1, redis::refusal_of(text_of(reply)));
        } else if (index == exec) {
          read_results(reply, count, outcome);
        } else if (index > exec) {
          read_replicas(reply, outcome);
        }
      });
    } catch (const Lost&) {
      if (!outcome.refusal) throw;  // else the server has said why it hung up
      outcome.refusal->reconnect = true;
    }
    return outcome;
  }
  static void read_results(const redisReply& reply, std::size_t count, Outcome& outcome) {
    if (reply.type != REDIS_REPLY_ARRAY || reply.elements != count) {
      outcome.refuse(0, {.reconnect = true, .reason = "the server's answer to EXEC is none"});
      return;
    }
    // While they are carried out only whole streams fail, so that order in each is kept.
    while (outcome.count < count && !failed(*reply.element[outcome.count])) ++outcome.count;
    if (outcome.count < count) {
      outcome.refuse(outcome.count, redis::refusal_of(text_of(*reply.element[outcome.count])));
    }
  }
  void read_replicas(const redisReply& reply, Outcome& outcome) const {
    if (reply.type == REDIS_REPLY_INTEGER && reply.integer >= options_.wait_replicas) return;
    outcome.count = 0;
    outcome.refuse(0, {.reason = "only " + std::to_string(reply.integer) + " of " +
                                 counted(static_cast<std::size_t>(options_.wait_replicas), "replica") +
                                 " confirmed within " + postrider::text_of(options_.wait_timeout)});
  }

  const RedisSinkOptions options_;
  const redis::Settings settings_;
  const NameTemplate stream_;
  std::string max_len_;
  redis::Alarm alarm_;
  std::optional<Connection> connection_;
  // Kept for their memory.
  CloudEvent event_;
  std::string key_;
  std::string names_;
  std::vector<std::string_view> words_;
  std::string request_;
};

}  // namespace

std::shared_ptr<Sink> redis_sink(RedisSinkOptions options) {
  using std::chrono::milliseconds;
  using std::chrono::minutes;
  constexpr std::size_t longest_stream = 512;
  const OptionCheck check("RedisSinkOptions");
  if (options.name.empty()) check.refuse("name", "''", "1 to 128 characters");
  check.text("name", options.name, 128);
  if (options.username.size() > 512) check.refuse("username", "a longer text", "at most 512 bytes");
  if (options.password.size() > 4096) check.refuse("password", "a longer text", "at most 4096 bytes");
  check.count("max_len", options.max_len, 0, 1'000'000'000'000);
  check.number("wait_replicas", options.wait_replicas, 0, 100);
  check.time("timeout", options.timeout, milliseconds{1}, minutes{10});
  check.time("connect_timeout", options.connect_timeout, milliseconds{1}, minutes{10});
  if (options.wait_replicas != 0)
    check.time("wait_timeout", options.wait_timeout, milliseconds{1}, options.timeout);
  NameTemplate stream(check, "stream", options.stream, longest_stream);
  options.cloud_events.check();
  redis::Settings settings = redis::parse_url(options.url);
  if (!options.username.empty()) settings.username = options.username;
  if (!options.password.empty()) settings.password = options.password;
  SinkLimits limits = std::exchange(options.limits, {});
  return guarded_sink(std::make_shared<RedisSink>(std::move(options), std::move(settings), std::move(stream)),
                      std::move(limits));
}

}  // namespace postrider
