// SPDX-License-Identifier: Apache-2.0
// Errors that a real broker makes once in a year: librdkafka's mock cluster makes them at once.
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "postrider/kafka_sink.hpp"
#include "sinks/kafka/kafka_broker.hpp"
#include "sinks/sink_fixture.hpp"

namespace postrider::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Kind = PublishResult::Kind;
using Clock = std::chrono::steady_clock;

constexpr std::int16_t produce_request = 0;
constexpr std::int16_t init_producer_id_request = 22;

class KafkaMock : public SinkConformance {
 protected:
  void SetUp() override {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, nullptr);
    owner_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf, nullptr, 0));
    ASSERT_NE(owner_, nullptr);
    cluster_ = rd_kafka_mock_cluster_new(owner_.get(), 1);
    brokers_ = rd_kafka_mock_cluster_bootstraps(cluster_);
    rd_kafka_mock_topic_create(cluster_, "t", 1, 1);
  }
  void TearDown() override {
    if (cluster_ != nullptr) rd_kafka_mock_cluster_destroy(cluster_);
  }
  std::shared_ptr<Sink> sink(Duration timeout = 5s,
                             std::map<std::string, std::string> properties = {}) const {
    return kafka_sink({.brokers = brokers_,
                       .topic = "t",
                       .properties = std::move(properties),
                       .timeout = timeout,
                       .limits = {.breaker_threshold = 0, .log = [](LogLevel, std::string_view) {}}});
  }
  void next_answers(std::int16_t request, const std::vector<rd_kafka_resp_err_t>& errors) {
    rd_kafka_mock_push_request_errors_array(cluster_, request, errors.size(), errors.data());
  }
  void answers_after(std::chrono::milliseconds time) {
    rd_kafka_mock_broker_set_rtt(cluster_, 1, static_cast<int>(time.count()));
  }
  std::vector<Received> received() const { return KafkaReader(brokers_, "t").read(); }
  void expect_in_order(int count, int keys) {
    std::map<std::string, std::vector<int>> expected;
    for (int i = 0; i < count; ++i) expected["k" + std::to_string(i % keys)].push_back(i / keys);
    EXPECT_EQ(order_by_key(received()), expected);
  }

  KafkaHandle owner_;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  std::string brokers_;
};

TEST_F(KafkaMock, WhatPassesIsTriedAgainWithinTheTimeout) {
  const auto to = sink();
  const std::vector<Event> events = numbered(100, 3);
  next_answers(produce_request,
               {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT});
  const PublishResult result = to->send(messages(events));
  EXPECT_EQ(result.kind(), Kind::all) << result.reason();
  expect_in_order(100, 3);
}

TEST_F(KafkaMock, WhatDoesNotPassIsUnavailableAfterTheTimeout) {
  const auto to = sink(500ms);
  const std::vector<Event> events = numbered(10, 1);
  next_answers(produce_request,
               std::vector<rd_kafka_resp_err_t>(1'000, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS));
  const auto begin = Clock::now();
  const PublishResult result = to->send(messages(events));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_EQ(result.count(10), 0U);
  EXPECT_LT(Clock::now() - begin, 3s);
  rd_kafka_mock_clear_request_errors(cluster_, produce_request);
  EXPECT_EQ(to->send(messages(events)).kind(), Kind::all);
  expect_in_order(10, 1);
}

TEST_F(KafkaMock, AFullDiskOfTheBrokerIsUnavailableAndLosesNothing) {
  // What a broker says of a partition whose disk is full, before it gives that disk up.
  const auto to = sink(500ms, {{"batch.num.messages", "10"}});
  const std::vector<Event> events = numbered(300, 3);
  const std::vector<SinkMessage> all = messages(events);
  ASSERT_EQ(to->send(std::span(all).first(100)).kind(), Kind::all);
  std::vector<rd_kafka_resp_err_t> answers(1'002, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR);
  answers[0] = answers[1] = RD_KAFKA_RESP_ERR_NO_ERROR;
  next_answers(produce_request, answers);
  const PublishResult full = to->send(std::span(all).subspan(100, 100));
  EXPECT_EQ(full.kind(), Kind::unavailable) << "no event's fault: none of them may become a dead letter";
  EXPECT_EQ(full.count(100), 20U) << "two requests were acknowledged";
  EXPECT_THAT(full.reason(), HasSubstr("has not acknowledged within 500 ms"));
  EXPECT_EQ(to->trouble(), full.reason());
  const PublishResult still = to->send(std::span(all).subspan(120, 100));
  EXPECT_EQ(still.kind(), Kind::unavailable);
  EXPECT_EQ(still.count(100), 0U);
  rd_kafka_mock_clear_request_errors(cluster_, produce_request);
  EXPECT_EQ(to->send(std::span(all).subspan(120)).kind(), Kind::all) << "room was made";
  EXPECT_EQ(to->trouble(), "");
  expect_in_order(300, 3);
  EXPECT_EQ(received().size(), 300U) << "and nothing twice";
}

class KafkaFatal : public KafkaMock, public ::testing::WithParamInterface<rd_kafka_resp_err_t> {};

TEST_P(KafkaFatal, AProducerThatIsLostIsReplaced) {
  const auto to = sink(5s, {{"batch.num.messages", "10"}});
  const std::vector<Event> events = numbered(300, 3);
  const std::vector<SinkMessage> all = messages(events);
  ASSERT_EQ(to->send(std::span(all).first(100)).kind(), Kind::all);
  next_answers(produce_request, {RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR_NO_ERROR, GetParam()});
  const PublishResult result = to->send(std::span(all).subspan(100, 100));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_EQ(result.count(100), 20U) << "two requests were acknowledged";
  EXPECT_THAT(result.reason(), HasSubstr("it goes on with a new producer"));
  ASSERT_EQ(to->send(std::span(all).subspan(100 + result.count(100))).kind(), Kind::all);
  expect_in_order(300, 3);
}
INSTANTIATE_TEST_SUITE_P(Errors, KafkaFatal,
                         ::testing::Values(RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
                                           RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH),
                         [](const auto& one) { return std::string(rd_kafka_err2name(one.param)); });

TEST_F(KafkaMock, AProducerThatTheBrokerHasForgottenGoesOn) {
  const auto to = sink();
  const std::vector<Event> events = numbered(200, 3);
  const std::vector<SinkMessage> all = messages(events);
  ASSERT_EQ(to->send(std::span(all).first(100)).kind(), Kind::all);
  next_answers(produce_request, {RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID});
  ASSERT_TRUE(send_all(*to, std::span(all).subspan(100)));
  expect_in_order(200, 3);
}

TEST_F(KafkaMock, NoProducerIdIsUnavailable) {
  const auto to = sink(500ms);
  const std::vector<Event> events = numbered(10, 1);
  next_answers(init_producer_id_request,
               std::vector<rd_kafka_resp_err_t>(1'000, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS));
  EXPECT_EQ(to->send(messages(events)).kind(), Kind::unavailable);
  rd_kafka_mock_clear_request_errors(cluster_, init_producer_id_request);
  EXPECT_TRUE(send_all(*to, messages(events)));
}

TEST_F(KafkaMock, AnswersThatComeTooLateAreNotAwaited) {
  const auto to = sink(500ms);
  const std::vector<Event> events = numbered(30, 3);
  const std::vector<SinkMessage> all = messages(events);
  ASSERT_TRUE(send_all(*to, std::span(all).first(10)));
  answers_after(30s);
  for (int again = 0; again < 2; ++again) {
    const auto begin = Clock::now();
    const PublishResult result = to->send(std::span(all).subspan(10, 10));
    EXPECT_EQ(result.kind(), Kind::unavailable);
    EXPECT_THAT(result.reason(), HasSubstr("has not acknowledged within 500 ms"));
    EXPECT_THAT(result.reason(), Not(HasSubstr("ap-less"))) << "a gap is made by our own giving up";
    EXPECT_LT(Clock::now() - begin, 3s);
  }
  answers_after(0ms);
  ASSERT_TRUE(send_all(*to, std::span(all).subspan(10)));
  expect_in_order(30, 3);
}

TEST_F(KafkaMock, NothingOfAFailedBatchComesLater) {
  const auto to = sink(500ms);
  const std::vector<Event> events = numbered(20, 1);
  const std::vector<SinkMessage> all = messages(events);
  ASSERT_TRUE(send_all(*to, std::span(all).first(1)));
  rd_kafka_mock_broker_set_down(cluster_, 1);
  const PublishResult result = to->send(std::span(all).subspan(1, 18));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), HasSubstr("500 ms"));
  rd_kafka_mock_broker_set_up(cluster_, 1);
  ASSERT_TRUE(send_all(*to, std::span(all).subspan(19)));
  EXPECT_EQ(received().size(), 2U) << "the first and the last";
}

TEST_F(KafkaMock, WhatStandsBehindARefusedMessageDoesNotComeFirst) {
  const auto to = sink(5s, {{"batch.num.messages", "10"}});
  const std::vector<Event> events = numbered(100, 1);
  const std::vector<SinkMessage> all = messages(events);
  // The second request is refused, and then the message alone: later, with another bound, it is taken.
  next_answers(produce_request, {RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
                                 RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE});
  const PublishResult result = to->send(all);
  EXPECT_EQ(result.kind(), Kind::refused);
  EXPECT_EQ(result.count(100), 10U);
  EXPECT_EQ(received().size(), 10U);
  ASSERT_EQ(to->send(std::span(all).subspan(10)).kind(), Kind::all);
  expect_in_order(100, 1);
}

TEST_F(KafkaMock, ARequestThatIsTriedAgainIsNotOvertaken) {
  // This broker looks at no sequence numbers, as a real one that meets a producer for the first time.
  const auto to = sink(5s, {{"batch.num.messages", "1"}});
  const std::vector<Event> events = numbered(10, 1);
  next_answers(produce_request, {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION});
  answers_after(20ms);  // time enough to send the next request before the answer to the first
  ASSERT_TRUE(send_all(*to, messages(events)));
  answers_after(0ms);
  expect_in_order(10, 1);
}

TEST_F(KafkaMock, AMessageThatWasRefusedForItsCompanyIsSentAlone) {
  const auto to = sink();
  const std::vector<Event> events = numbered(100, 3);
  next_answers(produce_request, {RD_KAFKA_RESP_ERR_INVALID_RECORD});
  const PublishResult result = to->send(messages(events));
  EXPECT_EQ(result.kind(), Kind::all) << result.reason();
  expect_in_order(100, 3);
}

TEST_F(KafkaMock, RightsThatAreMissingAreNoEventsFault) {
  const auto to = sink();
  const std::vector<Event> events = numbered(1, 1);
  next_answers(produce_request, {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED});
  const PublishResult result = to->send(messages(events));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), HasSubstr("Write"));
  EXPECT_EQ(to->send(messages(events)).kind(), Kind::all);
}

TEST_F(KafkaMock, ATopicForEachType) {
  const auto to = kafka_sink({.brokers = brokers_, .topic = "{type}"});
  std::vector<Event> events;
  for (int i = 0; i < 60; ++i) events.push_back(Event::json("type-" + std::to_string(i), "{}"));
  EXPECT_TRUE(send_all(*to, messages(events), 20));
  EXPECT_EQ(KafkaReader(brokers_, "type-0").read().size(), 1U);
  EXPECT_EQ(KafkaReader(brokers_, "type-59").read().size(), 1U);
}

}  // namespace
}  // namespace postrider::test
