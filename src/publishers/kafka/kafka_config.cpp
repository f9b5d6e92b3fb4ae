// SPDX-License-Identifier: Apache-2.0
#include "publishers/kafka/kafka_config.hpp"

#include <syslog.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace postrider::kafka {
namespace {

/// Order, or that nothing is lost, rests on these; the others are options with a name of their own.
constexpr std::array<std::string_view, 13> not_for_users{"bootstrap.servers",
                                                         "metadata.broker.list",
                                                         "enable.idempotence",
                                                         "enable.gapless.guarantee",
                                                         "acks",
                                                         "request.required.acks",
                                                         "message.timeout.ms",
                                                         "delivery.timeout.ms",
                                                         "transactional.id",
                                                         "delivery.report.only.error",
                                                         "queuing.strategy",
                                                         "opaque",
                                                         "log.queue"};

bool is_secret(std::string_view property) {
  constexpr std::array<std::string_view, 5> signs{"password", "secret", "pem", "token", "oauthbearer.config"};
  return std::any_of(signs.begin(), signs.end(),
                     [&](std::string_view sign) { return property.find(sign) != std::string_view::npos; });
}

[[noreturn]] void refuse(const std::string& property, const std::string& why, std::string_view hint) {
  throw Error(ErrorCode::invalid_argument,
              "cannot use the Kafka property '" + property + "' (\"kafka." + property +
                  "\" of the sink, KafkaSinkOptions::properties)",
              why, hint);
}

void set(rd_kafka_conf_t* conf, const std::string& property, const std::string& value,
         const Complaints& complaints) {
  std::array<char, 512> why{};
  if (rd_kafka_conf_set(conf, property.c_str(), value.c_str(), why.data(), why.size()) == RD_KAFKA_CONF_OK)
    return;
  refuse(property, complaints.without_secrets(why.data()),
         "librdkafka " + std::string(rd_kafka_version_str()) + " names its properties in CONFIGURATION.md");
}

}  // namespace

Complaints::Complaints(LogCallback log, std::vector<std::string> secrets)
    : log_(std::move(log)), secrets_(std::move(secrets)) {}

void Complaints::hear(int level, std::string_view text) {
  constexpr std::size_t longest = 500;
  if (text.starts_with("[thrd:")) {  // "[thrd:host:port/1]: what happened"
    const std::size_t end = text.find("]: ");
    if (end != std::string_view::npos) text.remove_prefix(end + 3);
  }
  std::string said = without_secrets(utf8_repaired(utf8_prefix(text, longest)));
  log_(LogLevel::debug, "postrider: librdkafka: " + said);
  if (level > LOG_WARNING) return;
  // That all are down says less than why one is.
  const MutexLock lock(mutex_);
  if (last_.empty() || said.find("brokers are down") == std::string::npos) last_ = std::move(said);
}

std::string Complaints::last() const {
  const MutexLock lock(mutex_);
  return last_;
}

void Complaints::forget() {
  const MutexLock lock(mutex_);
  last_.clear();
}

std::string Complaints::without_secrets(std::string text) const {
  for (const std::string& secret : secrets_) {
    for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
      text.replace(at, secret.size(), "***");
      at += 3;
    }
  }
  return text;
}

std::vector<std::string> secrets_of(const KafkaSinkOptions& options) {
  std::vector<std::string> secrets;
  for (const auto& [property, value] : options.properties) {
    if (is_secret(property) && !value.empty()) secrets.push_back(value);
  }
  std::sort(secrets.begin(), secrets.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  return secrets;
}

Conf make_conf(const KafkaSinkOptions& options, const Complaints& complaints) {
  Conf conf(rd_kafka_conf_new());
  const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(options.timeout).count();
  const std::vector<std::pair<std::string, std::string>> defaults{
      {"client.id", "postrider"},
      {"bootstrap.servers", options.brokers},
      {"enable.idempotence", "true"},
      {"acks", "all"},
      // A message that is refused stops those behind it, which else would arrive before it.
      {"enable.gapless.guarantee", "true"},
      // A broker that does not know the producer takes any sequence number for its first. With several
      // requests under way, the second could so be taken where the first was not, and come before it.
      {"max.in.flight.requests.per.connection", "1"},
      {"message.timeout.ms", "0"},  // the sink's own timeout takes back what is late
      {"request.timeout.ms", std::to_string(timeout)},
      {"topic.metadata.propagation.max.ms", std::to_string(std::min<std::int64_t>(timeout / 2, 30'000))},
      {"partitioner", "murmur2_random"},
      // Attributes of CloudEvents repeat from message to message. Brokers look at less of what is compressed,
      // too: without it the headers cost them more than the rest of the message.
      {"compression.type", "lz4"},
      {"queue.buffering.max.kbytes", "131072"},
      {"reconnect.backoff.max.ms", "1000"},
      {"socket.keepalive.enable", "true"},
      {"log.connection.close", "false"},
  };
  for (const auto& [property, value] : defaults) set(conf.get(), property, value, complaints);
  for (const auto& [property, value] : options.properties) {
    if (std::find(not_for_users.begin(), not_for_users.end(), property) != not_for_users.end()) {
      refuse(property, "the sink sets it by itself",
             "leave it out; brokers, topic and timeout are options of the sink");
    }
    set(conf.get(), property, value, complaints);
  }
  return conf;
}

}  // namespace postrider::kafka
