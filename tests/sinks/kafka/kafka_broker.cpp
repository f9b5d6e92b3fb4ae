// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/kafka_broker.hpp"

#include <librdkafka/rdkafka.h>

#include <array>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <utility>
#include "support/places.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

template <class T, void (*destroy)(T*)>
struct Destroy {
  void operator()(T* object) const noexcept { destroy(object); }
};
using Topic = std::unique_ptr<rd_kafka_topic_t, Destroy<rd_kafka_topic_t, rd_kafka_topic_destroy>>;
using Queue = std::unique_ptr<rd_kafka_queue_t, Destroy<rd_kafka_queue_t, rd_kafka_queue_destroy>>;
using ReportEvent = std::unique_ptr<rd_kafka_event_t, Destroy<rd_kafka_event_t, rd_kafka_event_destroy>>;
using NewTopic =
    std::unique_ptr<rd_kafka_NewTopic_t, Destroy<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy>>;
using DeleteTopic =
    std::unique_ptr<rd_kafka_DeleteTopic_t, Destroy<rd_kafka_DeleteTopic_t, rd_kafka_DeleteTopic_destroy>>;
using Message = std::unique_ptr<rd_kafka_message_t, Destroy<rd_kafka_message_t, rd_kafka_message_destroy>>;
using List = std::unique_ptr<rd_kafka_topic_partition_list_t,
                             Destroy<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>>;

KafkaHandle make_handle(rd_kafka_type_t type, const std::map<std::string, std::string>& properties) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 512> why{};
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), why.data(), why.size()) != RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      throw std::runtime_error(why.data());
    }
  }
  rd_kafka_conf_set_log_cb(conf, nullptr);
  rd_kafka_t* const handle = rd_kafka_new(type, conf, why.data(), why.size());
  if (handle == nullptr) throw std::runtime_error(why.data());
  return KafkaHandle(handle);
}

std::string text(const void* data, std::size_t size) {
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}

Received received_of(const rd_kafka_message_t& message) {
  Received one{.key = text(message.key, message.key_len), .body = text(message.payload, message.len)};
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return one;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == 0; ++i) {
    const std::string header(name);
    if (header == "content-type") {
      one.content_type = text(value, size);
    } else if (header.starts_with("ce_")) {
      one.attributes[header.substr(3)] = text(value, size);
    } else {
      one.headers[header] = text(value, size);
    }
  }
  return one;
}

}  // namespace

void KafkaHandleDeleter::operator()(rd_kafka_s* handle) const noexcept {
  rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);  // there is no group to leave
}

KafkaBroker& KafkaBroker::shared() {
  static KafkaBroker broker;
  return broker;
}

KafkaBroker::KafkaBroker(std::string folder)
    : folder_(folder.empty() ? own_folder_.file("broker") : std::move(folder)) {
  start();
}

std::string KafkaBroker::login_address() const {
  const std::size_t colon = address_.find(':');
  return address_.substr(0, colon + 1) + std::to_string(std::stoi(address_.substr(colon + 1)) + 1);
}

void KafkaBroker::start() {
  if (process_ != nullptr) return;
  process_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{test::source_file("scripts/kafka"), "run", folder_});
  // The first time the jars have to be fetched.
  const auto line = process_->read_line(300s);
  if (!line) throw std::runtime_error("scripts/kafka run: says nothing");
  address_ = *line;
  await_answer();
}

void KafkaBroker::kill() {
  process_.reset();
}

void KafkaBroker::freeze() {
  process_->freeze();
}

void KafkaBroker::thaw() {
  process_->signal(SIGCONT);
}

void KafkaBroker::await_answer() {
  const KafkaHandle handle =
      make_handle(RD_KAFKA_PRODUCER, {{"bootstrap.servers", address_}, {"reconnect.backoff.max.ms", "100"}});
  const auto end = Clock::now() + 60s;
  while (Clock::now() < end) {
    const rd_kafka_metadata_t* metadata = nullptr;
    if (rd_kafka_metadata(handle.get(), 1, nullptr, &metadata, 1'000) != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    const bool there = metadata->broker_cnt > 0;
    rd_kafka_metadata_destroy(metadata);
    if (there) return;
  }
  throw std::runtime_error("the broker does not answer; its log is " + folder_ + "/log");
}

std::string KafkaBroker::create_topic(int partitions, const std::map<std::string, std::string>& config) {
  const std::string name = "topic-" + std::to_string(++topics_);
  create_topic(name, partitions, config);
  return name;
}

void KafkaBroker::create_topic(const std::string& name, int partitions,
                               const std::map<std::string, std::string>& config) {
  const KafkaHandle handle = make_handle(RD_KAFKA_PRODUCER, {{"bootstrap.servers", address_}});
  const Queue queue(rd_kafka_queue_new(handle.get()));
  const NewTopic topic(rd_kafka_NewTopic_new(name.c_str(), partitions, 1, nullptr, 0));
  for (const auto& [property, value] : config) {
    rd_kafka_NewTopic_set_config(topic.get(), property.c_str(), value.c_str());
  }
  rd_kafka_NewTopic_t* topics[] = {topic.get()};
  rd_kafka_CreateTopics(handle.get(), topics, 1, nullptr, queue.get());
  const ReportEvent event(rd_kafka_queue_poll(queue.get(), 30'000));
  if (event == nullptr) throw std::runtime_error("cannot create " + name + ": no answer");
  if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw std::runtime_error("cannot create " + name + ": " + rd_kafka_event_error_string(event.get()));
  }
  std::size_t count = 0;
  const auto* const results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()), &count);
  if (count != 1 || rd_kafka_topic_result_error(results[0]) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw std::runtime_error("cannot create " + name + ": " + rd_kafka_topic_result_error_string(results[0]));
  }
}

void KafkaBroker::delete_topic(const std::string& name) {
  const KafkaHandle handle = make_handle(RD_KAFKA_PRODUCER, {{"bootstrap.servers", address_}});
  const Queue queue(rd_kafka_queue_new(handle.get()));
  const DeleteTopic topic(rd_kafka_DeleteTopic_new(name.c_str()));
  rd_kafka_DeleteTopic_t* topics[] = {topic.get()};
  rd_kafka_DeleteTopics(handle.get(), topics, 1, nullptr, queue.get());
  const ReportEvent event(rd_kafka_queue_poll(queue.get(), 30'000));
  if (event == nullptr) throw std::runtime_error("cannot delete " + name + ": no answer");
}

KafkaReader::KafkaReader(const std::string& brokers, std::string topic)
    : topic_(std::move(topic)),
      handle_(make_handle(RD_KAFKA_CONSUMER, {{"bootstrap.servers", brokers},
                                              {"group.id", "reader"},
                                              {"enable.auto.commit", "false"},
                                              {"fetch.wait.max.ms", "10"},
                                              {"reconnect.backoff.max.ms", "200"}})) {
  rd_kafka_poll_set_consumer(handle_.get());
}

void KafkaReader::assign() {
  const Topic topic(rd_kafka_topic_new(handle_.get(), topic_.c_str(), nullptr));
  const rd_kafka_metadata_t* metadata = nullptr;
  if (rd_kafka_metadata(handle_.get(), 0, topic.get(), &metadata, 10'000) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return;
  const int count = metadata->topics[0].partition_cnt;
  rd_kafka_metadata_destroy(metadata);
  const List list(rd_kafka_topic_partition_list_new(count));
  for (std::int32_t partition = 0; partition < count; ++partition) {
    rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), partition)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
    next_[partition] = 0;
  }
  rd_kafka_assign(handle_.get(), list.get());
}

const std::vector<Received>& KafkaReader::read() {
  if (next_.empty()) assign();
  std::map<std::int32_t, std::int64_t> ends;
  for (const auto& [partition, ignored] : next_) {
    std::int64_t low = 0;
    if (rd_kafka_query_watermark_offsets(handle_.get(), topic_.c_str(), partition, &low, &ends[partition],
                                         10'000) != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return all_;
    }
  }
  const auto behind = [&] {
    for (const auto& [partition, end] : ends) {
      if (next_[partition] < end) return true;
    }
    return false;
  };
  const auto limit = Clock::now() + 30s;
  while (behind() && Clock::now() < limit) {
    const Message message(rd_kafka_consumer_poll(handle_.get(), 1'000));
    if (message == nullptr || message->err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    next_[message->partition] = message->offset + 1;
    all_.push_back(received_of(*message));
    partitions_.push_back(message->partition);
  }
  return all_;
}

}  // namespace postrider::test
