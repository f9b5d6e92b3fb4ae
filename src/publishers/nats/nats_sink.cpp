// SPDX-License-Identifier: Apache-2.0
#include "postrider/nats_sink.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "core/option_check.hpp"
#include "postrider/detail/sync.hpp"
#include "publishers/name_template.hpp"
#include "publishers/nats/ack.hpp"
#include "publishers/nats/batch.hpp"
#include "publishers/nats/connection.hpp"
#include "publishers/nats/message_id.hpp"
#include "publishers/nats/subject.hpp"

namespace postrider {
namespace {

using nats::Batch;
using nats::Connection;
using nats::Lost;
using nats::Message;

constexpr std::size_t bytes_on_their_way = std::size_t{1} << 20U;
/// How often a send that waits looks whether the server has forbidden what it asked for: that is no answer.
constexpr Duration glance = std::chrono::milliseconds{200};

class NatsSink final : public Sink {
 public:
  NatsSink(NatsSinkOptions options, nats::Settings settings, NameTemplate subject)
      : options_(std::move(options)), settings_(std::move(settings)), subject_(std::move(subject)) {}

  /// The guard before it lets one caller in at a time.
  PublishResult send(std::span<const SinkMessage> messages) override {
    const SteadyPoint until = Clock::system().steady_now() + options_.timeout;
    Batch batch(messages, bytes_on_their_way);
    try {
      const std::shared_ptr<Connection> connection = connected(until);
      deliver(*connection, batch, messages, until);
    } catch (const Lost& lost) {
      // What is on its way over this connection may still arrive: of each key the first message only, with
      // which a retry begins. Its answer would be mistaken for nobody's.
      drop();
      return PublishResult::unavailable(batch.first_open(), settings_.place() + ": " + lost.why);
    }
    return placed(batch.result(), messages.size());
  }
  const std::string& name() const noexcept override { return options_.name; }
  void close() noexcept override POSTRIDER_EXCLUDES(mutex_) {
    std::shared_ptr<Connection> open;
    {
      const MutexLock lock(mutex_);
      closed_ = true;
      open = connection_;
    }
    if (open != nullptr) open->close();  // it ends what waits there
  }

 private:
  [[nodiscard]] PublishResult placed(const PublishResult& result, std::size_t size) const {
    const std::string reason = settings_.place() + ": " + result.reason();
    switch (result.kind()) {
      case PublishResult::Kind::refused:
        return PublishResult::refused(result.count(size), reason);
      case PublishResult::Kind::unavailable:
        return PublishResult::unavailable(result.count(size), reason);
      case PublishResult::Kind::all:
        break;
    }
    return result;
  }

  /// Throws Lost.
  std::shared_ptr<Connection> connected(SteadyPoint until) POSTRIDER_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (closed_) throw Lost{"the sink is closed"};
      if (connection_ != nullptr && connection_->usable()) return connection_;
    }
    drop();
    auto made =
        std::make_shared<Connection>(options_, settings_, std::min(left(until), options_.connect_timeout));
    {
      const MutexLock lock(mutex_);
      if (closed_) throw Lost{"the sink is closed"};
      connection_ = made;
    }
    if (options_.create_stream) made->ensure_stream(options_, left(until));
    return made;
  }
  void drop() POSTRIDER_EXCLUDES(mutex_) {
    std::shared_ptr<Connection> old;
    const MutexLock lock(mutex_);
    old.swap(connection_);
  }
  /// Throws Lost when there is none.
  static Duration left(SteadyPoint until) {
    const auto time = std::chrono::ceil<Duration>(until - Clock::system().steady_now());
    if (time <= Duration{0}) throw Lost{"no acknowledgement in time"};
    return time;
  }

  /// Returns when the batch is settled. Throws Lost.
  void deliver(Connection& connection, Batch& batch, std::span<const SinkMessage> messages,
               SteadyPoint until) {
    ++round_;
    while (!batch.settled()) {
      while (const auto index = batch.next()) publish(connection, batch, messages[*index], *index);
      if (batch.settled()) return;
      Message answer;
      const natsStatus status = connection.next(answer, std::min(left(until), glance));
      if (status == NATS_OK) {
        read(connection.reply_name(*answer), *answer, batch);
      } else if (status == NATS_NO_RESPONDERS) {
        batch.one_failed("no stream takes the subject. Hint: make the stream '" + options_.stream +
                         "' with the subjects " + nats::subjects_of(options_.subject) +
                         ", or let it be made: create_stream, in a configuration create-stream = true");
      } else if (status != NATS_TIMEOUT) {
        throw Lost{nats::text_of(status)};
      }
      if (status != NATS_OK && connection.forbidden()) {
        throw Lost{"the user may not publish to the subject. Hint: allow " +
                   nats::subjects_of(options_.subject) + " for publishing, and _INBOX.> for subscriptions"};
      }
    }
  }
  /// Throws Lost.
  void publish(Connection& connection, Batch& batch, const SinkMessage& message, std::size_t index) {
    event_.fill(message, options_.cloud_events);
    subject_.render(message, name_, nats::append_token);
    const Message made =
        connection.make(name_, std::to_string(round_) + "-" + std::to_string(index), event_.body());
    std::size_t bytes = event_.body().size();
    const auto add = [&](const std::string& name, const std::string& value) {
      const natsStatus status = natsMsgHeader_Set(made.get(), name.c_str(), value.c_str());
      if (status != NATS_OK) throw Lost{"cannot set the header " + name + ": " + nats::text_of(status)};
      bytes += name.size() + value.size();
    };
    add("Nats-Msg-Id", nats::message_id(message, name_));
    add("content-type", std::string(event_.content_type()));
    for (const CloudEvent::Attribute& one : event_.attributes()) {
      add("ce-" + std::string(one.name), cloud_events_header_value(one.value));
    }
    for (const CloudEvent::Header& one : event_.headers()) add(std::string(one.name), std::string(one.value));
    const natsStatus status = connection.publish(*made);
    if (status == NATS_OK) {
      batch.sent(index, bytes);
    } else if (status == NATS_MAX_PAYLOAD) {
      batch.failed(index, true, "the event is larger than the server takes (max_payload)");
    } else {
      throw Lost{"cannot send: " + nats::text_of(status)};
    }
  }
  /// An answer to an earlier batch is nobody's any more.
  void read(std::string_view reply_name, const natsMsg& answer, Batch& batch) const {
    std::uint64_t round = 0;
    std::size_t index = 0;
    const char* const end = reply_name.data() + reply_name.size();
    const auto [dash, no_round] = std::from_chars(reply_name.data(), end, round);
    if (no_round != std::errc{} || dash == end || *dash != '-' || round != round_) return;
    if (std::from_chars(dash + 1, end, index).ec != std::errc{}) return;
    const std::string_view json(natsMsg_GetData(&answer),
                                static_cast<std::size_t>(natsMsg_GetDataLength(&answer)));
    nats::Ack ack = nats::parse_ack(json, options_.stream);
    if (ack.stored) {
      batch.stored(index);
    } else {
      batch.failed(index, ack.of_the_event, std::move(ack.reason));
    }
  }

  const NatsSinkOptions options_;
  const nats::Settings settings_;
  const NameTemplate subject_;
  Mutex mutex_;
  bool closed_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Connection> connection_ POSTRIDER_GUARDED_BY(mutex_);
  // Of the one thread that sends.
  std::uint64_t round_ = 0;
  CloudEvent event_;
  std::string name_;
};

}  // namespace

std::shared_ptr<Sink> nats_sink(NatsSinkOptions options) {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  using std::chrono::minutes;
  constexpr std::size_t longest_subject = 255;
  constexpr std::size_t longest_secret = 4096;
  const OptionCheck check("NatsSinkOptions");
  if (options.name.empty()) check.refuse("name", "''", "1 to 128 characters");
  check.text("name", options.name, 128);
  for (const auto& [option, value] :
       {std::pair<const char*, const std::string&>{"username", options.username},
        {"password", options.password},
        {"token", options.token},
        {"credentials_file", options.credentials_file}}) {
    // Not the value: it is a secret.
    if (value.size() > longest_secret || value.find('\0') != std::string::npos) {
      check.refuse(option, "what was given", "at most 4096 bytes without NUL");
    }
  }
  check.number("replicas", options.replicas, 1, 5);
  check.time("duplicates", options.duplicates, milliseconds{100}, hours{24 * 30});
  check.time("timeout", options.timeout, milliseconds{1}, minutes{10});
  check.time("connect_timeout", options.connect_timeout, milliseconds{1}, minutes{1});
  NameTemplate subject(check, "subject", options.subject, longest_subject);
  nats::check_subject(check, options.subject);
  nats::check_stream(check, options.stream);
  options.cloud_events.check();
  nats::Settings settings = nats::parse_url(options.url);
  settings.tls = settings.tls || options.tls;
  if (settings.tls && options.tls_cert.empty() != options.tls_key.empty()) {
    check.refuse(
        "tls_cert",
        options.tls_cert.empty() ? "nothing, with a key" : "'" + options.tls_cert + "' without a key",
        "given together with its key, and without one not at all");
  }
  if (!settings.tls && !(options.tls_ca.empty() && options.tls_cert.empty() && options.tls_key.empty())) {
    check.refuse("tls", "false", "true when there are certificates");
  }
  if (!options.username.empty()) settings.username = options.username;
  if (!options.password.empty()) settings.password = options.password;
  if (!options.token.empty()) settings.token = options.token;
  if (options.connect_timeout > options.timeout) options.connect_timeout = options.timeout;
  SinkLimits limits = std::exchange(options.limits, {});
  return guarded_sink(std::make_shared<NatsSink>(std::move(options), std::move(settings), std::move(subject)),
                      std::move(limits));
}

}  // namespace postrider
