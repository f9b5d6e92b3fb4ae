// SPDX-License-Identifier: Apache-2.0
#include "postrider/kafka_sink.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <utility>

#include "core/option_check.hpp"
#include "core/text_bounds.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "publishers/kafka/producer.hpp"
#include "publishers/kafka/topic_template.hpp"

namespace postrider {
namespace {

using kafka::Producer;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t most_topics = 10'000;  // then a new producer begins to count anew
constexpr std::size_t smallest_batch = 1'024;
constexpr auto slice = std::chrono::milliseconds{50};  // until `close` is noticed

/// Whether a broker has refused messages for what is in them. It says so of all that came in one request.
bool blames_content(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
      return true;
    default:
      return false;
  }
}

bool blames_size(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || error == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE;
}

std::string_view hint_for(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
      return ". Hint: raise the topic's max.message.bytes, and the property message.max.bytes of the sink";
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return ". Hint: create the topic; the brokers do not do it by themselves (auto.create.topics.enable)";
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      return ". Hint: the user needs the rights Write and Describe on the topic, and IdempotentWrite on "
             "brokers "
             "before 3.0";
    default:
      return "";
  }
}

/// What became of a part of the batch.
struct Attempt {
  enum class Kind : std::uint8_t {
    complete,
    unavailable,
    refused,  ///< the message behind `count`, surely
    suspect,  ///< perhaps the one at `suspect`: it was refused together with others
  };
  Kind kind = Kind::complete;
  std::size_t count = 0;  ///< acknowledged, from the first on
  std::size_t suspect = 0;
  bool too_large = false;
  std::string reason{};
};

class KafkaSink final : public Sink {
 public:
  KafkaSink(KafkaSinkOptions options, const LogCallback& log)
      : options_(std::move(options)),
        topic_(options_.topic),
        complaints_(guarded(log), kafka::secrets_of(options_)),
        conf_(kafka::make_conf(options_, complaints_)) {
    const Producer proof(*conf_, complaints_);  // that the properties go together; what connects comes later
  }

  PublishResult send(std::span<const SinkMessage> messages) override;
  const std::string& name() const noexcept override { return options_.name; }
  void close() noexcept override { closed_ = true; }

 private:
  [[nodiscard]] Attempt attempt(std::span<const SinkMessage> messages, SteadyClock::time_point deadline);
  [[nodiscard]] Attempt hand_over(std::span<const SinkMessage> messages, SteadyClock::time_point deadline);
  void await_reports(SteadyClock::time_point deadline);
  [[nodiscard]] Attempt judge(std::span<const SinkMessage> messages, Attempt handed_over);
  [[nodiscard]] std::string why_not(rd_kafka_resp_err_t error, const SinkMessage& message);
  void make_producer();
  void send_smaller_batches();

  const KafkaSinkOptions options_;
  const kafka::TopicTemplate topic_;
  kafka::Complaints complaints_;
  kafka::Conf conf_;
  std::atomic<bool> closed_ = false;

  // Of the one thread that the guard lets in.
  std::unique_ptr<Producer> producer_;
  CloudEvent encoded_;
  std::string to_;
};

PublishResult KafkaSink::send(std::span<const SinkMessage> messages) {
  const SteadyClock::time_point deadline = SteadyClock::now() + options_.timeout;
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  std::size_t sent = 0;
  std::size_t window = all;
  std::optional<std::size_t> suspect;
  while (sent < messages.size()) {
    const std::size_t size = std::min(window, messages.size() - sent);
    const Attempt result = attempt(messages.subspan(sent, size), deadline);
    const std::size_t begin = sent;
    sent += result.count;
    switch (result.kind) {
      case Attempt::Kind::unavailable:
        return PublishResult::unavailable(sent, result.reason);
      case Attempt::Kind::refused:
        return PublishResult::refused(sent, result.reason);
      case Attempt::Kind::complete:
        // Was it refused for the company it was in? Then let that grow slowly.
        window = suspect && sent == *suspect ? 1 : (window > all / 2 ? all : window * 2);
        break;
      case Attempt::Kind::suspect:
        if (size == 1) return PublishResult::refused(sent, result.reason);
        if (result.too_large) send_smaller_batches();
        if (SteadyClock::now() >= deadline) return PublishResult::unavailable(sent, result.reason);
        // First those before it, then it alone.
        suspect = begin + result.suspect;
        window = std::max<std::size_t>(*suspect - sent, 1);
        break;
    }
  }
  return PublishResult::all();
}

Attempt KafkaSink::attempt(std::span<const SinkMessage> messages, SteadyClock::time_point deadline) {
  try {
    make_producer();
  } catch (const Error& error) {  // a file of certificates that is gone, no more threads
    return {.kind = Attempt::Kind::unavailable, .reason = what_of(error)};
  }
  producer_->begin(messages.size());
  const Attempt handed_over = hand_over(messages, deadline);
  await_reports(deadline);
  Attempt result = judge(messages, handed_over);
  if (producer_->saw_failure() || producer_->unreported() > 0 || !producer_->fatal_error().empty()) {
    // Nothing of this attempt may arrive behind the next one.
    producer_.reset();
  } else if (result.kind == Attempt::Kind::complete) {
    complaints_.forget();
  }
  return result;
}

/// Returns what stopped it; `count` says how many were handed over.
Attempt KafkaSink::hand_over(std::span<const SinkMessage> messages, SteadyClock::time_point deadline) {
  constexpr std::size_t between_looks = 256;
  for (std::size_t at = 0; at < messages.size(); ++at) {
    const auto stop = [&](Attempt::Kind kind, std::string reason) {
      return Attempt{.kind = kind, .count = at, .reason = std::move(reason)};
    };
    if (std::string no = topic_.render(messages[at], to_); !no.empty()) {
      return stop(Attempt::Kind::refused, std::move(no));
    }
    encoded_.fill(messages[at], options_.cloud_events);
    rd_kafka_resp_err_t error = producer_->produce(to_, encoded_);
    while (error == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      producer_->serve(slice);
      if (closed_ || producer_->saw_failure() || SteadyClock::now() >= deadline)
        return stop(Attempt::Kind::unavailable, why_not(Producer::pending, messages[at]));
      error = producer_->produce(to_, encoded_);
    }
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return stop(blames_content(error) ? Attempt::Kind::refused : Attempt::Kind::unavailable,
                  why_not(error, messages[at]));
    }
    if (at % between_looks == 0) {
      producer_->take_reports();
      if (closed_ || producer_->saw_failure()) return stop(Attempt::Kind::unavailable, {});
    }
  }
  return {.count = messages.size()};
}

void KafkaSink::await_reports(SteadyClock::time_point deadline) {
  bool stopped = false;
  while (producer_->unreported() > 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (closed_ || left.count() <= 0) {
      producer_->purge_all();
      return;
    }
    producer_->serve(std::min(slice, left));
    if (!stopped && producer_->saw_failure()) {
      // What is on its way may still be acknowledged; nothing else shall follow.
      producer_->purge_queue();
      stopped = true;
    }
  }
}

Attempt KafkaSink::judge(std::span<const SinkMessage> messages, Attempt handed_over) {
  const std::vector<rd_kafka_resp_err_t>& reports = producer_->reports();
  const auto failed = std::find_if(reports.begin(), reports.end(),
                                   [](rd_kafka_resp_err_t one) { return one != RD_KAFKA_RESP_ERR_NO_ERROR; });
  if (failed == reports.end()) return handed_over;  // as far as it came, and what stopped it
  Attempt result{
      .kind = Attempt::Kind::unavailable,
      .count = static_cast<std::size_t>(failed - reports.begin()),
  };
  result.reason = why_not(*failed, messages[result.count]);
  const auto blamed = std::find_if(failed, reports.end(), blames_content);
  if (blamed != reports.end()) {
    result.kind = Attempt::Kind::suspect;
    result.suspect = static_cast<std::size_t>(blamed - reports.begin());
    result.too_large = blames_size(*blamed);
    result.reason = why_not(*blamed, messages[result.suspect]);
  }
  return result;
}

std::string KafkaSink::why_not(rd_kafka_resp_err_t error, const SinkMessage& message) {
  const std::string to = "Kafka at " + options_.brokers;
  if (closed_) return "the sink to " + to + " is closed";
  const std::string fatal = producer_->fatal_error();
  const std::string tail = fatal.empty() ? "" : " (" + fatal + "); it goes on with a new producer";
  switch (error) {
    case Producer::pending:
    case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
    case RD_KAFKA_RESP_ERR__PURGE_INFLIGHT:
    case RD_KAFKA_RESP_ERR__FATAL: {
      if (!fatal.empty()) return to + " has lost this producer" + tail;
      const std::string last = complaints_.last();
      return to + " has not acknowledged within " + text_of(options_.timeout) +
             (last.empty() ? std::string() : ": " + last);
    }
    default:
      (void)topic_.render(message, to_);
      return to + ", topic '" + to_ + "': " + rd_kafka_err2str(error) +
             (blames_content(error) ? std::string() : tail) + std::string(hint_for(error));
  }
}

void KafkaSink::make_producer() {
  if (producer_ != nullptr && producer_->topics() < most_topics) return;
  producer_.reset();
  producer_ = std::make_unique<Producer>(*conf_, complaints_);
}

/// A broker's bound is on a batch of messages as a whole. From here on for all producers of this sink.
void KafkaSink::send_smaller_batches() {
  std::array<char, 32> text{};
  std::size_t size = text.size();
  if (rd_kafka_conf_get(conf_.get(), "batch.size", text.data(), &size) != RD_KAFKA_CONF_OK) return;
  const std::size_t smaller = std::max(smallest_batch, std::stoul(text.data()) / 4);
  rd_kafka_conf_set(conf_.get(), "batch.size", std::to_string(smaller).c_str(), nullptr, 0);
}

}  // namespace

std::shared_ptr<Sink> kafka_sink(KafkaSinkOptions options) {
  const OptionCheck check("KafkaSinkOptions");
  check_text_bounds("cannot make a sink to Kafka", "name", options.name, 1, 128);
  if (options.brokers.empty()) check.refuse("brokers", "''", "one or more of host:port, with commas between");
  check.time("timeout", options.timeout, std::chrono::milliseconds{100}, std::chrono::minutes{10});
  options.cloud_events.check();
  SinkLimits limits = std::exchange(options.limits, {});
  auto sink = std::make_shared<KafkaSink>(std::move(options), limits.log);
  return guarded_sink(std::move(sink), std::move(limits));
}

}  // namespace postrider
