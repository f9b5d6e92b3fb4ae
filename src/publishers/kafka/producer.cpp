// SPDX-License-Identifier: Apache-2.0
#include "publishers/kafka/producer.hpp"

#include <syslog.h>

#include <array>
#include <utility>

#include "postrider/error.hpp"

namespace postrider::kafka {
namespace {

rd_kafka_vu_t field(rd_kafka_vtype_t type) {
  rd_kafka_vu_t value{};
  value.vtype = type;
  return value;
}

rd_kafka_vu_t bytes(rd_kafka_vtype_t type, std::string_view content) {
  rd_kafka_vu_t value = field(type);
  value.u.mem.ptr = const_cast<char*>(content.data());  // the C API has no const here; it copies
  value.u.mem.size = content.size();
  return value;
}

}  // namespace

Producer::Producer(const rd_kafka_conf_t& conf, Complaints& complaints) : complaints_(complaints) {
  Conf own(rd_kafka_conf_dup(&conf));
  rd_kafka_conf_set_opaque(own.get(), this);
  rd_kafka_conf_set_dr_msg_cb(own.get(), &Producer::on_report);
  // Without a callback for errors they are logged at once, and do not gather while nobody sends.
  rd_kafka_conf_set_log_cb(own.get(), &Producer::on_log);
  std::array<char, 512> why{};
  handle_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, own.get(), why.data(), why.size()));
  if (handle_ == nullptr) {
    throw Error(ErrorCode::invalid_argument, "cannot make a producer for Kafka",
                complaints_.without_secrets(why.data()),
                "look at the Kafka properties (\"kafka.…\" of the sink, KafkaSinkOptions::properties)");
  }
  (void)own.release();  // NOLINT(bugprone-unused-return-value): it is the handle's now
}

Producer::~Producer() {
  if (unreported() > 0) purge_all();
  topics_.clear();
  handle_.reset();  // its threads speak to this object until then
}

void Producer::begin(std::size_t messages) {
  reports_.clear();
  reports_.reserve(messages);
  produced_ = 0;
  reported_ = 0;
  failed_ = false;
}

rd_kafka_resp_err_t Producer::produce(const std::string& topic, const CloudEvent& message) {
  rd_kafka_topic_t* const to = topic_of(topic);
  if (to == nullptr) return rd_kafka_last_error();
  Headers headers = headers_of(message);
  std::array<rd_kafka_vu_t, 6> fields{
      field(RD_KAFKA_VTYPE_RKT),
      field(RD_KAFKA_VTYPE_MSGFLAGS),
      field(RD_KAFKA_VTYPE_OPAQUE),
      field(RD_KAFKA_VTYPE_HEADERS),
      bytes(RD_KAFKA_VTYPE_VALUE, message.body()),
      bytes(RD_KAFKA_VTYPE_KEY, message.key()),
  };
  fields[0].u.rkt = to;
  fields[1].u.i = RD_KAFKA_MSG_F_COPY;
  fields[2].u.ptr = reinterpret_cast<void*>(produced_);
  fields[3].u.headers = headers.get();
  // A message without a key has none, which is not the same as an empty one: it may go anywhere.
  const std::size_t count = fields.size() - (message.key().empty() ? 1 : 0);
  if (rd_kafka_error_t* const error = rd_kafka_produceva(handle_.get(), fields.data(), count);
      error != nullptr) {
    const rd_kafka_resp_err_t code = rd_kafka_error_code(error);
    rd_kafka_error_destroy(error);
    return code;
  }
  (void)headers.release();  // NOLINT(bugprone-unused-return-value): they are the message's now
  reports_.push_back(pending);
  ++produced_;
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

void Producer::serve(Milliseconds wait) {
  rd_kafka_flush(handle_.get(), static_cast<int>(wait.count()));
}

void Producer::purge_queue() {
  rd_kafka_purge(handle_.get(), RD_KAFKA_PURGE_F_QUEUE);
}

void Producer::purge_all() {
  constexpr Milliseconds enough{2'000};  // its threads have nothing to wait for
  if (fatal_error().empty()) given_up_ = true;
  rd_kafka_purge(handle_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  serve(enough);
}

std::string Producer::fatal_error() const {
  if (given_up_) return {};
  std::array<char, 512> why{};
  if (rd_kafka_fatal_error(handle_.get(), why.data(), why.size()) == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return complaints_.without_secrets(why.data());
}

void Producer::on_report(rd_kafka_t* /*handle*/, const rd_kafka_message_t* message, void* opaque) {
  auto& self = *static_cast<Producer*>(opaque);
  const auto index = reinterpret_cast<std::size_t>(message->_private);
  self.reports_[index] = message->err;
  ++self.reported_;
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) self.failed_ = true;
}

void Producer::on_log(const rd_kafka_t* handle, int level, const char* facility, const char* text) {
  // While it is being made there may be no handle yet. That a property is experimental is known.
  if (handle == nullptr || std::string_view(facility) == "CONFWARN") return;
  const auto& self = *static_cast<Producer*>(rd_kafka_opaque(handle));
  self.complaints_.hear(self.given_up_ ? LOG_DEBUG : level, text);
}

rd_kafka_topic_t* Producer::topic_of(const std::string& name) {
  const auto found = topics_.find(name);
  if (found != topics_.end()) return found->second.get();
  rd_kafka_topic_t* const topic = rd_kafka_topic_new(handle_.get(), name.c_str(), nullptr);
  if (topic != nullptr) topics_.emplace(name, topic);
  return topic;
}

Producer::Headers Producer::headers_of(const CloudEvent& message) {
  constexpr std::string_view prefix = "ce_";
  constexpr std::string_view content_type = "content-type";
  Headers headers(rd_kafka_headers_new(message.attributes().size() + message.headers().size() + 1));
  const auto add = [&](std::string_view name, std::string_view value) {
    rd_kafka_header_add(headers.get(), name.data(), static_cast<ssize_t>(name.size()), value.data(),
                        static_cast<ssize_t>(value.size()));
  };
  add(content_type, message.content_type());
  for (const CloudEvent::Attribute& attribute : message.attributes()) {
    header_name_ = prefix;
    header_name_ += attribute.name;
    add(header_name_, attribute.value);
  }
  for (const CloudEvent::Header& header : message.headers()) add(header.name, header.value);
  return headers;
}

}  // namespace postrider::kafka
