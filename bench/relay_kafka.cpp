// SPDX-License-Identifier: Apache-2.0
#include "relay.hpp"
#include "sandbox.hpp"
#if defined(POSTRIDER_BENCH_KAFKA)
#include <librdkafka/rdkafka.h>
#include <stdlib.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <postrider/kafka_sink.hpp>
#include <sinks/kafka/kafka_broker.hpp>
#endif

namespace postrider::bench {

#if defined(POSTRIDER_BENCH_KAFKA)
namespace {

constexpr std::size_t present = 2'000'000;  // seconds: shorter ones measure the page cache
constexpr std::size_t batch = 2'000;
constexpr std::size_t wallets = 1'000;
constexpr int partitions = 1;

std::string key_of(std::size_t number) {
  return "wallet-" + std::to_string(number % wallets);
}

void seed(Storage& storage) {
  constexpr std::size_t per_append = 1'000;
  EventStore store(storage);
  for (std::size_t done = 0; done < present; done += per_append) {
    std::vector<AppendEvent> some;
    some.reserve(per_append);
    for (std::size_t i = done; i < done + per_append; ++i) {
      some.push_back(
          AppendEvent::builder("BenchEvent").tag("wallet_id", key_of(i)).data(payload_200(i)).build());
    }
    store.append(some);
  }
}

/// A message of ours, as it goes out.
struct Sample {
  std::string value;
  std::vector<std::pair<std::string, std::string>> headers;
  std::size_t bytes;  ///< of key, value and headers
};

Sample sample_of(Storage& storage) {
  EventStore store(storage);
  EventStream events = store.read(Query::all(), {.limit = 1});
  const StoredEvent first = *events.begin();
  CloudEvent encoded;
  encoded.fill(
      {.event = &first.event(), .stored = &first, .topic = "all", .epoch = Epoch{1}, .key = "wallet-100"},
      {});
  Sample sample{std::string(encoded.body()), {{"content-type", std::string(encoded.content_type())}}, 0};
  for (const auto& [name, value] : encoded.attributes()) {
    sample.headers.emplace_back("ce_" + std::string(name), value);
  }
  sample.bytes = encoded.key().size() + sample.value.size();
  for (const auto& [name, value] : sample.headers) sample.bytes += name.size() + value.size();
  return sample;
}

/// A topic for one round; its files go soon after it.
class RoundTopic {
 public:
  explicit RoundTopic(test::KafkaBroker& broker)
      : broker_(broker), name_(broker.create_topic(partitions, {{"file.delete.delay.ms", "100"}})) {}
  ~RoundTopic() { broker_.delete_topic(name_); }
  RoundTopic(const RoundTopic&) = delete;
  RoundTopic& operator=(const RoundTopic&) = delete;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  test::KafkaBroker& broker_;
  std::string name_;
};

/// Counts what another one has published.
class Counted final : public Publisher {
 public:
  explicit Counted(std::shared_ptr<Publisher> publisher) : publisher_(std::move(publisher)) {}
  PublishResult publish_batch(std::span<const StoredEvent> events, const PublishContext& context) override {
    const PublishResult result = publisher_->publish_batch(events, context);
    const std::lock_guard lock(mutex_);
    count_ += result.count(events.size());
    if (count_ >= present) reached_.notify_all();
    return result;
  }
  std::string name() const override { return publisher_->name(); }
  bool healthy() const override { return publisher_->healthy(); }
  void await_all() {
    std::unique_lock lock(mutex_);
    if (!reached_.wait_for(lock, std::chrono::seconds{120}, [&] { return count_ >= present; }))
      throw std::runtime_error("only " + std::to_string(count_) + " published");
  }

 private:
  std::shared_ptr<Publisher> publisher_;
  std::mutex mutex_;
  std::condition_variable reached_;
  std::size_t count_ = 0;
};

double relay_all(Sandbox& sandbox, test::KafkaBroker& broker, int round) {
  const RoundTopic topic(broker);
  const std::string name = "kafka" + std::to_string(round);
  const auto sink = kafka_sink({.brokers = broker.address(), .topic = topic.name()});
  const auto publisher =
      std::make_shared<Counted>(sink_publisher(sink, {.name = name, .key_tag = "wallet_id"}));
  Relay relay(sandbox.storage());
  relay.add({.name = "all"}, publisher, {.batch_size = batch});
  const Stopwatch watch;
  relay.start();
  publisher->await_all();
  relay.stop();  // writes the progress
  const double rate = static_cast<double>(present) / watch.seconds();
  const auto status = relay.admin().find("all", name);
  if (!status || status->position != Position{present})
    throw std::runtime_error("the progress is not stored");
  return rate;
}

struct Bare {
  std::size_t acknowledged = 0;
  static void report(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) ++static_cast<Bare*>(opaque)->acknowledged;
  }
};

void check(rd_kafka_resp_err_t error) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(error));
}

rd_kafka_resp_err_t produce_one(rd_kafka_t* handle, rd_kafka_topic_t* topic, std::string& key,
                                std::string& value, rd_kafka_headers_t* headers) {
  std::array<rd_kafka_vu_t, 5> fields{};
  fields[0].vtype = RD_KAFKA_VTYPE_RKT;
  fields[0].u.rkt = topic;
  fields[1].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  fields[1].u.i = RD_KAFKA_MSG_F_COPY;
  fields[2].vtype = RD_KAFKA_VTYPE_KEY;
  fields[2].u.mem.ptr = key.data();
  fields[2].u.mem.size = key.size();
  fields[3].vtype = RD_KAFKA_VTYPE_VALUE;
  fields[3].u.mem.ptr = value.data();
  fields[3].u.mem.size = value.size();
  fields[4].vtype = RD_KAFKA_VTYPE_HEADERS;
  fields[4].u.headers = headers;
  rd_kafka_error_t* const error = rd_kafka_produceva(handle, fields.data(), headers == nullptr ? 4 : 5);
  const rd_kafka_resp_err_t code = rd_kafka_error_code(error);
  if (error != nullptr) rd_kafka_error_destroy(error);
  return code;
}

/// librdkafka's own example, as its package has it, with what we promise (idempotent, acks=all) and the
/// linger.ms that librdkafka has by default, with which it is quicker than with its own. Messages of the same
/// size.
double produce_by_example(test::KafkaBroker& broker, const Sample& sample) {
  const RoundTopic round(broker);
  const std::string key = key_of(100);
  std::vector<std::string> arguments{"rdkafka_performance", "-P", "-b", broker.address(), "-t", round.name()};
  arguments.insert(arguments.end(), {"-k", key, "-c", std::to_string(present)});
  arguments.insert(arguments.end(), {"-s", std::to_string(sample.bytes - key.size())});
  for (const char* const property : {"enable.idempotence=true", "acks=all", "linger.ms=5", "log_level=3"}) {
    arguments.insert(arguments.end(), {"-X", property});
  }
  const std::string said = output_of_child(arguments, POSTRIDER_BENCH_KAFKA_EXAMPLE);
  // "% 2000000 messages produced (… bytes), 2000000 delivered (…) in 2400ms: 833333 msgs/s and …"
  const std::string all = std::to_string(present) + " delivered";
  const std::size_t last = said.rfind(all);
  const std::size_t rate = last == std::string::npos ? last : said.find("ms: ", last);
  if (rate == std::string::npos) throw std::runtime_error("rdkafka_performance did not deliver all: " + said);
  return std::stod(said.substr(rate + 4));
}

/// The shortest loop that there is: as fast as the queue takes them. Messages of the same size, with all
/// bytes in the value or with our headers.
double produce_bare(test::KafkaBroker& broker, const Sample& sample, bool with_headers) {
  const RoundTopic round(broker);
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 512> why{};
  for (const auto& [property, value] :
       {std::pair{"bootstrap.servers", broker.address().c_str()}, std::pair{"enable.idempotence", "true"},
        std::pair{"acks", "all"}, std::pair{"partitioner", "murmur2_random"}, std::pair{"log_level", "3"}}) {
    if (rd_kafka_conf_set(conf, property, value, why.data(), why.size()) != RD_KAFKA_CONF_OK)
      throw std::runtime_error(why.data());
  }
  Bare bare;
  rd_kafka_conf_set_opaque(conf, &bare);
  rd_kafka_conf_set_dr_msg_cb(conf, &Bare::report);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < wallets; ++i) keys.push_back(key_of(i));
  std::string value = sample.value;
  if (!with_headers) value.resize(sample.bytes - keys.back().size(), 'x');
  const Stopwatch watch;
  const test::KafkaHandle handle(rd_kafka_new(RD_KAFKA_PRODUCER, conf, why.data(), why.size()));
  if (handle == nullptr) throw std::runtime_error(why.data());
  rd_kafka_topic_t* const topic = rd_kafka_topic_new(handle.get(), round.name().c_str(), nullptr);
  for (std::size_t i = 0; i < present; ++i) {
    rd_kafka_headers_t* const headers = with_headers ? rd_kafka_headers_new(sample.headers.size()) : nullptr;
    for (const auto& [name, text] : sample.headers) {
      if (headers == nullptr) break;
      check(rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), text.data(),
                                static_cast<ssize_t>(text.size())));
    }
    rd_kafka_resp_err_t error = produce_one(handle.get(), topic, keys[i % wallets], value, headers);
    while (error == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      rd_kafka_poll(handle.get(), 10);
      error = produce_one(handle.get(), topic, keys[i % wallets], value, headers);
    }
    check(error);
    rd_kafka_poll(handle.get(), 0);
  }
  check(rd_kafka_flush(handle.get(), 60'000));
  const double rate = static_cast<double>(present) / watch.seconds();
  rd_kafka_topic_destroy(topic);
  if (bare.acknowledged != present) throw std::runtime_error("not all were acknowledged");
  return rate;
}

}  // namespace
#endif

void relay_kafka(Report& report, const std::string& line) {
#if defined(POSTRIDER_BENCH_KAFKA)
  // A broker as it would be run, not one that starts quickly.
  ::setenv("POSTRIDER_KAFKA_JAVA", "-Xmx1g", 1);
  test::KafkaBroker broker;
  Sandbox sandbox(BackendKind::sqlite, "bench_relay_kafka");
  seed(sandbox.storage());
  const Sample sample = sample_of(sandbox.storage());
  int round = 0;
  // Until Java has compiled what each of them needs of it.
  (void)produce_bare(broker, sample, true);
  (void)produce_bare(broker, sample, false);
  (void)relay_all(sandbox, broker, ++round);
  std::vector<double> bare;
  std::vector<double> with_headers;
  const Medians rates = interleave(
      line, default_rounds, [&] { return relay_all(sandbox, broker, ++round); },
      [&] {
        with_headers.push_back(produce_bare(broker, sample, true));
        bare.push_back(produce_bare(broker, sample, false));
        return produce_by_example(broker, sample);
      });
  report.print({line,
                rates.ours,
                "events/s",
                "rdkafka_performance",
                rates.bare,
                Target::at_least(0.60),
                {{"rounds", double{default_rounds}},
                 {"spread", rates.spread},
                 {"events", double{present}},
                 {"batch_size", double{batch}},
                 {"message_bytes", static_cast<double>(sample.bytes)},
                 {"bare_loop", median(bare)},
                 {"ratio_to_bare_loop", rates.ours / median(bare)},
                 {"bare_loop_with_headers", median(with_headers)},
                 {"ratio_with_headers", rates.ours / median(with_headers)}}});
#else
  (void)report;
  throw Unavailable(line +
                    " needs the component postrider::kafka, and the example rdkafka_performance.c of the "
                    "package librdkafka-dev in /usr/share/doc");
#endif
}

}  // namespace postrider::bench
