// SPDX-License-Identifier: Apache-2.0
// Bodies that are written while they are sent, and bodies that never change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>

#include "app/http/body_stream.hpp"
#include "app/http/server.hpp"
#include "app/http/socket_client_fixture.hpp"
#include "app/http/static_body.hpp"

namespace postrider::http {
namespace {

using namespace std::chrono_literals;
using test::HttpAnswer;
using test::SocketClient;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t capacity = 100'000;

class StreamTest : public ::testing::Test {
 protected:
  void start() {
    Router router;
    router.add(
        {.method = Method::get, .pattern = "/stream", .handler = [this](const Request&, const Reply& reply) {
           auto stream = std::make_shared<BodyStream>(capacity);
           reply({.content_type = "text/event-stream", .stream = stream});
           streams_.set_value(stream);
         }});
    router.add({.method = Method::get,
                .pattern = "/",
                .lane = Lane::direct,
                .handler = static_body("<html>", "text/html; charset=utf-8")});
    options_.log = [](LogLevel, std::string_view) {};
    server_ = std::make_unique<Server>(std::move(router), options_);
    server_->start();
  }
  /// Asks for the stream; returns both of its ends.
  std::shared_ptr<BodyStream> open(SocketClient& client, const std::string& version = "1.1",
                                   const std::string& method = "GET") {
    client.send(method + " /stream HTTP/" + version + "\r\nHost: x\r\n\r\n");
    auto stream = streams_.get_future().get();
    streams_ = {};
    return stream;
  }
  /// A write after which the stream is closed, whatever is sent meanwhile.
  static void write_until_refused(BodyStream& stream) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (stream.write("x")) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it was never told";
      std::this_thread::yield();
    }
  }

  ServerOptions options_;
  std::promise<std::shared_ptr<BodyStream>> streams_;
  std::unique_ptr<Server> server_;
};

TEST_F(StreamTest, PartsArriveAsTheyAreWritten) {
  start();
  SocketClient client(server_->port());
  const auto stream = open(client);
  const std::string head = client.head().value();
  EXPECT_THAT(head, HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Content-Length")));
  EXPECT_TRUE(stream->write("data: one\n\n"));
  EXPECT_EQ(client.until("\n\n\r\n").value(), "b\r\ndata: one\n\n\r\n");
  EXPECT_TRUE(stream->write("data: two\n\n"));
  EXPECT_EQ(client.until("\n\n\r\n").value(), "b\r\ndata: two\n\n\r\n");
  stream->close();
  EXPECT_FALSE(stream->write("late"));
  EXPECT_EQ(client.until("0\r\n\r\n").value(), "0\r\n\r\n");
  EXPECT_TRUE(client.at_end());
}

TEST_F(StreamTest, WhatIsWrittenBeforeTheAnswerCountsToo) {
  auto stream = std::make_shared<BodyStream>(10);
  EXPECT_TRUE(stream->write("12345"));
  EXPECT_TRUE(stream->write("67890"));
  EXPECT_TRUE(stream->is_open());
  EXPECT_FALSE(stream->write("1")) << "one too many";
  EXPECT_FALSE(stream->is_open());
  EXPECT_EQ(stream->take().second, BodyStream::State::overrun);
}

TEST_F(StreamTest, AClientThatGoesIsNoticed) {
  start();
  SocketClient client(server_->port());
  const auto stream = open(client);
  ASSERT_TRUE(client.head().has_value());
  client.close();
  write_until_refused(*stream);
  EXPECT_FALSE(stream->is_open());
}

TEST_F(StreamTest, ASlowClientIsLetGoAndCostsNoMoreThanTheCapacity) {
  start();
  SocketClient client(server_->port());
  const auto stream = open(client);
  ASSERT_TRUE(client.head().has_value());
  std::size_t taken = 0;
  const std::string part(10'000, 'x');
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (stream->write(part)) {  // the kernel's buffers take some
    taken += part.size();
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    EXPECT_LE(server_->stats().body_bytes, capacity);
  }
  EXPECT_GE(taken, capacity);
  EXPECT_FALSE(client.until("0\r\n\r\n").has_value()) << "and does not take it for whole";
}

TEST_F(StreamTest, StopEndsStreamsAsTheyShouldEnd) {
  start();
  SocketClient client(server_->port());
  const auto stream = open(client);
  ASSERT_TRUE(client.head().has_value());
  ASSERT_TRUE(stream->write("last"));
  auto stopped = std::async(std::launch::async, [&] { return server_->stop(10s); });
  EXPECT_THAT(client.until("0\r\n\r\n").value_or("nothing"), HasSubstr("4\r\nlast\r\n"));
  client.close();
  EXPECT_TRUE(stopped.get()) << "nothing had to be cut";
  EXPECT_FALSE(stream->is_open());
  EXPECT_EQ(server_->stats().body_bytes, 0U);
}

TEST_F(StreamTest, Http10GetsItUntilTheEndOfTheConnection) {
  start();
  SocketClient client(server_->port());
  const auto stream = open(client, "1.0");
  EXPECT_THAT(client.head().value(), Not(HasSubstr("chunked")));
  ASSERT_TRUE(stream->write("plain"));
  EXPECT_EQ(client.until("plain").value(), "plain");
  stream->close();
  EXPECT_TRUE(client.at_end());
}

TEST_F(StreamTest, HeadGetsNone) {
  start();
  SocketClient client(server_->port());
  const auto stream = open(client, "1.1", "HEAD");
  EXPECT_THAT(client.head().value(), HasSubstr("HTTP/1.1 200"));
  EXPECT_TRUE(client.at_end());
  write_until_refused(*stream);
}

TEST_F(StreamTest, StreamsCountAgainstTheBudget) {
  options_.body_memory = 1U << 20U;
  start();
  std::vector<std::unique_ptr<SocketClient>> clients;
  std::vector<std::shared_ptr<BodyStream>> kept;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<SocketClient>(server_->port()));
    kept.push_back(open(*clients.back()));
    EXPECT_THAT(clients.back()->head().value(), HasSubstr("HTTP/1.1 200"));
  }
  SocketClient one_more(server_->port());
  const auto refused = open(one_more);
  EXPECT_EQ(one_more.answer().value().status, 503);
  EXPECT_FALSE(refused->is_open());
}

TEST_F(StreamTest, AStaticBodyIsSentOnce) {
  start();
  SocketClient client(server_->port());
  const HttpAnswer first = client.ask("GET", "/").value();
  EXPECT_EQ(first.body, "<html>");
  EXPECT_EQ(first.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(first.header("X-Content-Type-Options"), "nosniff");
  const std::string tag = first.header("ETag");
  ASSERT_FALSE(tag.empty());
  for (const std::string& known : {tag, "W/" + tag, "\"other\", " + tag, std::string("*")}) {
    const HttpAnswer again = client.ask("GET", "/", {}, "If-None-Match: " + known + "\r\n").value();
    EXPECT_EQ(again.status, 304) << known;
    EXPECT_EQ(again.body, "");
    EXPECT_EQ(again.header("ETag"), tag);
  }
  EXPECT_EQ(client.ask("GET", "/", {}, "If-None-Match: \"other\"\r\n").value().body, "<html>");
}

}  // namespace
}  // namespace postrider::http
