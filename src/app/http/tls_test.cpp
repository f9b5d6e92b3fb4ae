// SPDX-License-Identifier: Apache-2.0
// A port that speaks TLS, and clients that do or do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "app/http/server.hpp"
#include "app/http/socket_client_fixture.hpp"
#include "support/temp_dir.hpp"
#include "support/tls_identity.hpp"

namespace postrider::http {
namespace {

using namespace std::chrono_literals;
using test::HttpAnswer;
using test::SocketClient;
using test::TlsIdentity;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TlsTest : public ::testing::Test {
 protected:
  void start(Duration header_timeout = 10s) {
    const TlsIdentity identity = TlsIdentity::server(TlsIdentity::authority("ours"), "IP:127.0.0.1");
    identity.save_certificate(folder_.file("cert.pem"));
    identity.save_key(folder_.file("key.pem"));
    Router router;
    router.add({.pattern = "/hello", .handler = [](const Request&, const Reply& reply) {
                  reply({.body = "hello", .content_type = "text/plain"});
                }});
    ServerOptions options{.header_timeout = header_timeout};
    options.tls_certificate = folder_.file("cert.pem");
    options.tls_key = folder_.file("key.pem");
    options.log = [](LogLevel, std::string_view) {};
    server_ = std::make_unique<Server>(std::move(router), options);
    server_->start();
  }

  test::TempDir folder_;
  std::unique_ptr<Server> server_;
};

TEST_F(TlsTest, ARequestInPlainTextIsToldSo) {
  start();
  for (const std::string request : {"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", "G", "\r\n"}) {
    SocketClient client(server_->port());
    ASSERT_TRUE(client.send(request));
    const std::optional<HttpAnswer> answer = client.answer();
    ASSERT_TRUE(answer.has_value()) << request;
    EXPECT_EQ(answer->status, 400);
    EXPECT_EQ(answer->header("Content-Type"), "text/plain");
    EXPECT_EQ(answer->header("Connection"), "close");
    EXPECT_THAT(answer->body, HasSubstr("this port speaks HTTPS"));
    EXPECT_TRUE(client.at_end());
  }
}

TEST_F(TlsTest, WhoSaysNothingOrStopsInTheMiddleIsLetGo) {
  start(50ms);
  for (const char* begin : {"", "\x16", "\x16\x03\x01"}) {
    SocketClient client(server_->port());
    ASSERT_TRUE(client.send(begin));
    EXPECT_TRUE(client.at_end());
  }
  EXPECT_TRUE(server_->stop(10s));
}

TEST_F(TlsTest, ClientsThatSpeakItAreServed) {
  namespace asio = boost::asio;
  start();
  for (const auto version : {asio::ssl::context::tlsv12_client, asio::ssl::context::tlsv13_client}) {
    asio::io_context io;
    asio::ssl::context context(version);
    asio::ssl::stream<asio::ip::tcp::socket> stream(io, context);
    stream.next_layer().connect({asio::ip::address_v4::loopback(), server_->port()});
    stream.handshake(asio::ssl::stream_base::client);
    for (int i = 0; i < 3; ++i) {
      asio::write(stream, asio::buffer(std::string("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")));
      std::string got;
      while (got.find("\r\n\r\nhello") == std::string::npos) {
        std::string part(1000, '\0');
        part.resize(stream.read_some(asio::buffer(part)));
        got += part;
      }
      EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK"));
    }
  }
}

}  // namespace
}  // namespace postrider::http
