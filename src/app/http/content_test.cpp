// SPDX-License-Identifier: Apache-2.0
// Bodies in and out: types, gzip, HEAD.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include <memory>

#include "app/http/gzip_fixture.hpp"
#include "app/http/server.hpp"
#include "app/http/socket_client_fixture.hpp"

namespace postrider::http {
namespace {

using test::gzipped;
using test::HttpAnswer;
using test::SocketClient;
using ::testing::HasSubstr;

constexpr std::size_t body_limit = 100'000;

class ContentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Router router;
    router.add({.method = Method::post,
                .pattern = "/echo",
                .lane = Lane::write,
                .body_limit = body_limit,
                .handler = [](Request request, const Reply& reply) {
                  reply({.body = std::move(request.body), .content_type = "text/plain"});
                }});
    router.add(
        {.method = Method::get, .pattern = "/hello", .handler = [](const Request&, const Reply& reply) {
           reply({.body = "hello", .content_type = "text/plain"});
         }});
    for (const Method method : {Method::post, Method::remove}) {
      router.add({.method = method,
                  .pattern = "/verb",
                  .lane = Lane::write,
                  .handler = [](const Request& request, const Reply& reply) {
                    reply({.body = "done" + request.body, .content_type = "text/plain"});
                  }});
    }
    router.add({.method = Method::post,
                .pattern = "/guarded",
                .lane = Lane::write,
                .body_limit = body_limit,
                .admit = [](const Request& request) -> std::optional<Problem> {
                  if (request.header("Authorization") == "me") return std::nullopt;
                  return Problem{.status = 401, .code = "unauthorized"};
                },
                .handler = [](const Request&, const Reply& reply) { reply({.body = "{}"}); }});
    options_.log = [](LogLevel, std::string_view) {};
    server_ = std::make_unique<Server>(std::move(router), options_);
    server_->start();
  }
  HttpAnswer post(const std::string& body, const std::string& headers) {
    return SocketClient(server_->port())
        .ask("POST", "/echo", body, "Content-Type: application/json\r\n" + headers)
        .value();
  }
  HttpAnswer post_gzip(const std::string& body) { return post(body, "Content-Encoding: gzip\r\n"); }

  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

TEST_F(ContentTest, ABodyMustBeJson) {
  const auto status = [&](const std::string& headers) {
    return SocketClient(server_->port()).ask("POST", "/echo", "x", headers).value().status;
  };
  EXPECT_EQ(status("Content-Type: text/plain\r\n"), 415);
  EXPECT_EQ(status("Content-Type: application/json; charset=utf-8\r\n"), 200);
  EXPECT_EQ(status("Content-Type: Application/JSON\t ;charset=utf-8\r\n"), 200);
  EXPECT_EQ(status("Content-Type: application/json\r\nContent-Type: text/html\r\n"), 415);
}

TEST_F(ContentTest, WhoMayNotAskIsToldBeforeTheBodyIsRead) {
  SocketClient stranger(server_->port());
  ASSERT_TRUE(
      stranger.send("POST /guarded HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
                    "50000\r\n\r\n"));
  const std::optional<HttpAnswer> refused = stranger.answer();
  ASSERT_TRUE(refused.has_value()) << "not one byte of the body was sent";
  EXPECT_EQ(refused->status, 401);
  EXPECT_EQ(SocketClient(server_->port()).ask("POST", "/guarded", "{}", "Authorization: me\r\n")->status,
            200);
}

TEST_F(ContentTest, GzipIsUnpacked) {
  const std::string text = R"({"some":"json"})";
  EXPECT_EQ(post_gzip(gzipped(text)).body, text);
  EXPECT_EQ(post(gzipped(text), "Content-Encoding: GZip\r\n").body, text);
  EXPECT_EQ(post(gzipped(text), "Content-Encoding: x-gzip\r\n").body, text);
  EXPECT_EQ(post(text, "Content-Encoding: identity\r\n").body, text);
  const std::string large(body_limit, 'x');
  EXPECT_EQ(post_gzip(gzipped(large)).body, large);
  // The client has the last byte before the server knows that it has.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (server_->stats().body_bytes != 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_EQ(server_->stats().body_bytes, 0U) << "memory is given back";
}

TEST_F(ContentTest, ABombIsRefusedAtTheLimitAndTheConnectionGoesOn) {
  SocketClient client(server_->port());
  const std::string headers = "Content-Type: application/json\r\nContent-Encoding: gzip\r\n";
  for (const std::size_t size : {body_limit + 1, std::size_t{64} << 20U}) {
    const HttpAnswer answer = client.ask("POST", "/echo", gzipped(std::string(size, '\0')), headers).value();
    EXPECT_EQ(answer.status, 413) << size;
    EXPECT_THAT(answer.body, HasSubstr("body-too-large"));
  }
  EXPECT_EQ(client.ask("POST", "/echo", gzipped("ok"), headers).value().body, "ok");
}

TEST_F(ContentTest, BombsShareTheBudgetOfBodies) {
  server_.reset();
  options_.body_memory = 1U << 20U;
  Router router;
  router.add({.method = Method::post,
              .pattern = "/echo",
              .lane = Lane::write,
              .body_limit = std::size_t{16} << 20U,
              .handler = [](const Request&, const Reply& reply) { reply({.body = "taken"}); }});
  server_ = std::make_unique<Server>(std::move(router), options_);
  server_->start();
  const HttpAnswer answer = post_gzip(gzipped(std::string(8U << 20U, '\0')));
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(post_gzip(gzipped("small")).status, 200);
}

TEST_F(ContentTest, WhatIsNotGzipIsRefused) {
  for (const std::string& body :
       {std::string(), std::string("plain"), gzipped("cut off here").substr(0, 15), gzipped("x") + "y"}) {
    const HttpAnswer answer = post_gzip(body);
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(answer.body, HasSubstr("invalid-gzip"));
    EXPECT_THAT(answer.body, HasSubstr("\"hint\""));
  }
  for (const char* coding : {"br", "deflate", "gzip, gzip", "zstd", "gzip\r\nContent-Encoding: gzip"}) {
    const HttpAnswer answer = post(gzipped("x"), std::string("Content-Encoding: ") + coding + "\r\n");
    EXPECT_EQ(answer.status, 415) << coding;
    EXPECT_EQ(answer.header("Accept-Encoding"), "gzip, identity");
    EXPECT_THAT(answer.body, HasSubstr("content-encoding"));
  }
}

TEST_F(ContentTest, HeadIsGetWithoutTheBody) {
  SocketClient client(server_->port());
  ASSERT_TRUE(client.send("HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  const std::string head = client.head().value();
  EXPECT_THAT(head, HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(head, HasSubstr("Content-Length: 5\r\n"));
  // Had a body been sent, the next answer would begin with it.
  EXPECT_EQ(client.ask("GET", "/hello").value().body, "hello");
  ASSERT_TRUE(client.send("HEAD /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_THAT(client.head().value(), HasSubstr("HTTP/1.1 404"));
  EXPECT_TRUE(client.at_end()) << "no body of an error, either";
}

TEST_F(ContentTest, OptionsAreToldByTheMethodThatIsRefused) {
  const HttpAnswer answer = SocketClient(server_->port()).ask("OPTIONS", "/hello").value();
  EXPECT_EQ(answer.status, 405);
  EXPECT_EQ(answer.header("Allow"), "GET, HEAD");
}

TEST_F(ContentTest, AnEmptyObjectIsTakenForNoBody) {
  SocketClient client(server_->port());
  for (const char* body : {"", "{}", " {\r\n\t} \n"}) {
    const HttpAnswer answer = client.ask("POST", "/verb", body).value();
    EXPECT_EQ(answer.status, 200) << body;
    EXPECT_EQ(answer.body, "done") << "handlers do not see it";
  }
  client.send("DELETE /verb HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
  EXPECT_EQ(client.answer().value().status, 200) << "whatever type it is said to have";
  EXPECT_EQ(client.ask("POST", "/verb").value().status, 200) << "over one connection";
}

TEST_F(ContentTest, AnyOtherBodyThatIsNotExpectedIsRefused) {
  const auto verb = [&](const std::string& body) {
    return SocketClient(server_->port()).ask("POST", "/verb", body).value();
  };
  for (const char* body : {"{\"a\":1}", "[]", "null", " ", "{}{}", "{", "\"{}\""}) {
    const HttpAnswer answer = verb(body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_THAT(answer.body, HasSubstr("\"code\":\"no-body-expected\"")) << body;
    EXPECT_THAT(answer.body, HasSubstr("send it without one; {} is taken for none")) << body;
  }
  const HttpAnswer large = verb("{\"reason\":\"" + std::string(100, 'x') + "\"}");
  EXPECT_EQ(large.status, 413);
  EXPECT_THAT(large.body, HasSubstr("{} is taken for none"));
  SocketClient chunked(server_->port());
  chunked.send("POST /verb HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  chunked.send("80\r\n{" + std::string(0x7e, ' ') + "}\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.answer().value().status, 413) << "not announced, but noticed";
  const auto asked = SocketClient(server_->port()).ask("GET", "/hello", {}, "Content-Length: 2\r\n");
  EXPECT_EQ(asked.value().status, 413) << "who only asks changes nothing";
}

}  // namespace
}  // namespace postrider::http
