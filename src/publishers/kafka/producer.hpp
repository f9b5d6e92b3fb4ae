// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librdkafka/rdkafka.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/cloud_events.hpp"
#include "publishers/kafka/kafka_config.hpp"

namespace postrider::kafka {

/// One rd_kafka_t and what became of the messages of one batch. Used by one thread; when it is gone, nothing
/// more of it is delivered but what a broker has received already.
class Producer {
 public:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr rd_kafka_resp_err_t pending = RD_KAFKA_RESP_ERR__IN_PROGRESS;

  /// Throws Error(invalid_argument) with librdkafka's words when the properties do not fit together.
  Producer(const rd_kafka_conf_t& conf, Complaints& complaints);
  ~Producer();
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  /// Forgets the last batch, all of which must have been reported.
  void begin(std::size_t messages);
  /// Hands the next message of the batch over; it is copied. An error is of this message, which then is not
  /// part of the batch: try again after `serve` where the queue is full.
  [[nodiscard]] rd_kafka_resp_err_t produce(const std::string& topic, const CloudEvent& message);
  /// Takes delivery reports, for as long as `wait` while there is something to wait for. Then everything that
  /// was handed over is sent without lingering.
  void serve(Milliseconds wait);
  void take_reports() { rd_kafka_poll(handle_.get(), 0); }
  /// Gives up what was not sent yet, or also what was. All of it is reported then.
  void purge_queue();
  void purge_all();

  [[nodiscard]] std::size_t unreported() const noexcept { return produced_ - reported_; }
  [[nodiscard]] bool saw_failure() const noexcept { return failed_; }
  /// Of each message that was handed over: `pending`, no error, or one.
  [[nodiscard]] const std::vector<rd_kafka_resp_err_t>& reports() const noexcept { return reports_; }
  /// Empty while it can go on, and after a purge: that one has left a gap is no news then.
  [[nodiscard]] std::string fatal_error() const;
  /// How many topics it has met; each takes memory in it for its life.
  [[nodiscard]] std::size_t topics() const noexcept { return topics_.size(); }

 private:
  struct HandleDeleter {
    void operator()(rd_kafka_t* handle) const noexcept { rd_kafka_destroy(handle); }
  };
  struct TopicDeleter {
    void operator()(rd_kafka_topic_t* topic) const noexcept { rd_kafka_topic_destroy(topic); }
  };
  struct HeadersDeleter {
    void operator()(rd_kafka_headers_t* headers) const noexcept { rd_kafka_headers_destroy(headers); }
  };
  using Headers = std::unique_ptr<rd_kafka_headers_t, HeadersDeleter>;

  static void on_report(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque);
  static void on_log(const rd_kafka_t* handle, int level, const char* facility, const char* text);
  [[nodiscard]] rd_kafka_topic_t* topic_of(const std::string& name);
  [[nodiscard]] Headers headers_of(const CloudEvent& message);

  Complaints& complaints_;
  std::unique_ptr<rd_kafka_t, HandleDeleter> handle_;
  std::unordered_map<std::string, std::unique_ptr<rd_kafka_topic_t, TopicDeleter>> topics_;
  std::string header_name_;
  std::vector<rd_kafka_resp_err_t> reports_;
  std::size_t produced_ = 0;
  std::size_t reported_ = 0;
  bool failed_ = false;
  // Purged by us, before anything else was wrong with it: what librdkafka says of that is no reason to tell.
  std::atomic<bool> given_up_ = false;
};

}  // namespace postrider::kafka
