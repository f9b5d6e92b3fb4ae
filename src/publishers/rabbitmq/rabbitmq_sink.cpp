// SPDX-License-Identifier: Apache-2.0
#include "postrider/rabbitmq_sink.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <optional>
#include <utility>

#include "core/option_check.hpp"
#include "core/wording.hpp"
#include "publishers/rabbitmq/confirms.hpp"
#include "publishers/rabbitmq/connection.hpp"
#include "publishers/rabbitmq/routing_key.hpp"
#include "publishers/rabbitmq/watchdog.hpp"

namespace postrider {
namespace {

class RabbitmqSink final : public Sink {
 public:
  RabbitmqSink(RabbitmqSinkOptions options, RabbitmqAddress address, RoutingKey routing_key)
      : options_(std::move(options)), address_(std::move(address)), routing_key_(std::move(routing_key)) {}

  /// The guard before it lets one caller in at a time.
  PublishResult send(std::span<const SinkMessage> messages) override {
    Batch batch{.messages = messages, .limit = messages.size()};
    try {
      connect();
      const auto rule = options_.order_when_full ? KeyOrder::Rule::by_key : KeyOrder::Rule::any;
      batch.confirms.emplace(KeyOrder(messages, rule), messages.size(), connection_->next_tag());
      while (batch.going_on()) {
        publish_some(batch);
        if (batch.going_on()) hear(batch);
      }
    } catch (const RabbitmqTrouble& trouble) {
      return give_up(batch, trouble);
    }
    return result_of(batch);
  }
  const std::string& name() const noexcept override { return options_.name; }
  void close() noexcept override { watchdog_.close(); }

 private:
  struct Batch {
    std::span<const SinkMessage> messages;
    /// Nothing from here on is published: the first that cannot be, or that the broker did not take.
    std::size_t limit;
    std::string objection{};  ///< why the one at `limit` cannot be
    std::string not_taken{};  ///< why the broker did not take one
    std::optional<Confirms> confirms{};

    [[nodiscard]] bool going_on() const {
      return confirms->failed() ? confirms->on_the_way() > 0 : confirms->safe() < limit;
    }
    [[nodiscard]] std::size_t safe() const { return confirms ? confirms->safe() : 0; }
  };

  [[nodiscard]] SteadyPoint deadline() const { return Clock::system().steady_now() + options_.timeout; }

  void connect() {
    if (connection_ && !connection_->alive()) connection_.reset();
    if (connection_) return;
    if (watchdog_.closed()) throw RabbitmqTrouble{.why = "it is closed"};
    connection_.emplace(options_, address_, watchdog_);
    proven_ = false;
  }
  /// As many as may be on their way. On a new connection it is one until that is acknowledged: a broker that
  /// takes nothing does not get, with each attempt, another batch to work off later.
  [[nodiscard]] std::size_t window() const { return proven_ && careful_ == 0 ? options_.pipeline : 1; }

  void publish_some(Batch& batch) {
    Confirms& confirms = *batch.confirms;
    while (!confirms.failed() && confirms.on_the_way() < window()) {
      const std::optional<std::size_t> next = confirms.next();
      if (!next || *next >= batch.limit) return;
      const SinkMessage& message = batch.messages[*next];
      encoded_.fill(message, options_.cloud_events);
      routing_key_.write(message, key_);
      std::string objection = connection_->objection(key_, encoded_);
      if (!objection.empty()) {
        batch.objection = std::move(objection);
        batch.limit = *next;
        return;
      }
      connection_->publish(key_, encoded_, deadline());
      confirms.sent();
    }
  }
  void hear(Batch& batch) {
    using Kind = RabbitmqConnection::News::Kind;
    const std::optional<RabbitmqConnection::News> news = connection_->next(deadline());
    if (!news) throw RabbitmqTrouble{.why = silence()};
    Confirms& confirms = *batch.confirms;
    switch (news->kind) {
      case Kind::ack:
        confirms.ack(news->tag, news->multiple);
        if (!confirms.failed()) {
          proven_ = true;
          if (careful_ > 0) --careful_;
        }
        break;
      case Kind::nack:
        confirms.nack(news->tag, news->multiple);
        batch.not_taken =
            "RabbitMQ at " + address_.text() +
            " does not take a message. Hint: is the queue full, with the overflow reject-publish?";
        break;
      case Kind::returned:
        for (std::size_t at = confirms.safe(); at < batch.messages.size(); ++at) {
          if (confirms.is_on_the_way(at) && batch.messages[at].event->id().view() == news->id)
            confirms.returned(at);
        }
        batch.not_taken = "RabbitMQ at " + address_.text() + " has no queue for a message (" + news->text +
                          "). Hint: bind a queue to exchange '" + options_.exchange + "' for its routing key";
        break;
    }
  }
  [[nodiscard]] std::string silence() const {
    std::string why =
        "RabbitMQ at " + address_.text() + " has acknowledged nothing within " + text_of(options_.timeout);
    if (!connection_->blocked().empty()) {
      why += "; it takes no messages at present: " + connection_->blocked() +
             ". Hint: it lacks memory or disk space; see its alarms";
    }
    return why;
  }

  PublishResult give_up(const Batch& batch, const RabbitmqTrouble& trouble) {
    // Whatever is still on its way over this connection comes before anything on the next one, or repeats it.
    connection_.reset();
    if (watchdog_.closed()) return PublishResult::unavailable(batch.safe(), "'" + name() + "' is closed");
    const std::size_t on_the_way = batch.confirms ? batch.confirms->on_the_way() : 0;
    if (trouble.about_a_message && on_the_way == 1 && batch.confirms->is_on_the_way(batch.safe())) {
      return PublishResult::refused(batch.safe(), trouble.why);
    }
    // One of so many is to blame: they come again one at a time.
    if (trouble.about_a_message) careful_ = on_the_way;
    return PublishResult::unavailable(batch.safe(), trouble.why);
  }
  PublishResult result_of(const Batch& batch) {
    if (batch.confirms->failed()) {
      connection_.reset();
      return PublishResult::unavailable(batch.safe(), batch.not_taken);
    }
    if (batch.limit < batch.messages.size()) return PublishResult::refused(batch.limit, batch.objection);
    return PublishResult::all();
  }

  const RabbitmqSinkOptions options_;
  const RabbitmqAddress address_;
  const RoutingKey routing_key_;
  Watchdog watchdog_;
  std::optional<RabbitmqConnection> connection_;
  bool proven_ = false;      // the connection has brought an acknowledgement
  std::size_t careful_ = 0;  // so many are sent one at a time
  CloudEvent encoded_;
  std::string key_;
};

RabbitmqAddress address_of(const OptionCheck& check, const std::string& url) {
  constexpr std::size_t longest = 1024;
  constexpr int plain_port = 5672;
  constexpr int tls_port = 5671;
  const auto parsed = boost::urls::parse_uri(url);
  const bool fits = parsed && url.size() <= longest && !parsed->encoded_host().empty() &&
                    !parsed->has_query() && !parsed->has_fragment() &&
                    (parsed->scheme() == "amqp" || parsed->scheme() == "amqps");
  // Not shown: it may have a password in it.
  if (!fits) check.refuse("url", url.empty() ? "''" : "'…'", "amqp://host:port/virtual-host or amqps://…");
  if (parsed->has_userinfo()) {
    check.refuse("url", "'…@…'", "without a user and a password: they are options of their own");
  }
  RabbitmqAddress address;
  address.tls = parsed->scheme() == "amqps";
  address.host = parsed->host_address();
  address.port = parsed->has_port() && parsed->port_number() != 0 ? parsed->port_number()
                 : address.tls                                    ? tls_port
                                                                  : plain_port;
  const std::string path = parsed->path();
  address.virtual_host = path.size() > 1 ? path.substr(1) : "/";
  return address;
}

void check_file(const OptionCheck& check, std::string_view option, const std::string& path) {
  if (!path.empty() && ::access(path.c_str(), R_OK) != 0)
    check.refuse(option, "'" + path + "'", "a file that can be read");
}

void check_short(const OptionCheck& check, std::string_view option, const std::string& text) {
  constexpr std::size_t longest = 255;
  check.text(option, text, longest);
  if (text.size() > longest) check.refuse(option, "'" + text + "'", "at most 255 bytes long");
}

}  // namespace

std::shared_ptr<Sink> rabbitmq_sink(RabbitmqSinkOptions options) {
  const OptionCheck check("RabbitmqSinkOptions");
  constexpr Duration shortest = std::chrono::milliseconds{1};
  constexpr Duration longest = std::chrono::minutes{10};
  RabbitmqAddress address = address_of(check, options.url);
  check_short(check, "user", options.user);
  check_short(check, "queue", options.queue);
  check_short(check, "exchange", options.exchange);
  check_short(check, "routing_key", options.routing_key);
  constexpr std::size_t longest_password = 4096;
  if (options.password.size() > longest_password || options.password.find('\0') != std::string::npos) {
    check.refuse("password", "'…'", "at most 4096 bytes long");
  }
  if (!options.queue.empty() && !options.exchange.empty()) {
    check.refuse("queue", "'" + options.queue + "'", "empty when there is an exchange: give one of them");
  }
  check.count("pipeline", options.pipeline, 1, 10'000);
  check.time("timeout", options.timeout, shortest, longest);
  check.time("connect_timeout", options.connect_timeout, shortest, longest);
  check_file(check, "ca_file", options.ca_file);
  check_file(check, "cert_file", options.cert_file);
  check_file(check, "key_file", options.key_file);
  if (options.cert_file.empty() != options.key_file.empty()) {
    check.refuse("cert_file", "'" + options.cert_file + "'", "given together with key_file");
  }
  options.cloud_events.check();
  RoutingKey routing_key(options.routing_key);
  if (!options.queue.empty()) routing_key = RoutingKey::of_text(options.queue);
  SinkLimits limits = std::exchange(options.limits, {});
  return guarded_sink(
      std::make_shared<RabbitmqSink>(std::move(options), std::move(address), std::move(routing_key)),
      std::move(limits));
}

}  // namespace postrider
