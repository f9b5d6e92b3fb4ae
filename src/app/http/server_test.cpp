// SPDX-License-Identifier: Apache-2.0
// The server over real sockets, with clients that behave and clients that do not.
#include "app/http/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "app/http/socket_client_fixture.hpp"
#include "postrider/error.hpp"

namespace postrider::http {
namespace {

using namespace std::chrono_literals;
using test::HttpAnswer;
using test::SocketClient;
using ::testing::HasSubstr;

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    options_.log = [](LogLevel, std::string_view) {};
  }

  /// A gate that handlers of /wait stand before.
  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
  std::atomic<int> waiting_{0};

  Server& start() {
    Router router;
    const auto echo = [](Request request, const Reply& reply) {
      Response response{.body = request.body, .content_type = "text/plain"};
      for (const auto& [name, value] : request.query) response.body += name + "=" + value + ";";
      for (const auto& [name, value] : request.parameters) response.body += name + "=" + value + ";";
      reply(std::move(response));
    };
    router.add({.method = Method::get, .pattern = "/echo", .lane = Lane::read, .handler = echo});
    router.add({.method = Method::get, .pattern = "/echo/{name}/x", .lane = Lane::read, .handler = echo});
    router.add({.method = Method::post,
                .pattern = "/echo",
                .lane = Lane::write,
                .body_limit = 100'000,
                .handler = echo});
    router.add({.method = Method::get,
                .pattern = "/wait",
                .lane = Lane::read,
                .handler = [this](const Request&, const Reply& reply) {
                  ++waiting_;
                  waiting_.notify_all();
                  opened_.wait();
                  reply({.body = "waited"});
                }});
    router.add(
        {.method = Method::get,
         .pattern = "/large",
         .lane = Lane::read,
         .handler = [](const Request&, const Reply& reply) { reply({.body = std::string(900'000, 'x')}); }});
    router.add({.method = Method::get,
                .pattern = "/throw",
                .lane = Lane::read,
                .handler = [](const Request&, const Reply&) { throw std::runtime_error("secret"); }});
    router.add({.method = Method::get,
                .pattern = "/forget",
                .lane = Lane::read,
                .handler = [](const Request&, const Reply&) {}});
    router.add({.method = Method::get,
                .pattern = "/direct",
                .lane = Lane::direct,
                .handler = [](const Request&, const Reply& reply) { reply({.body = "ok"}); }});
    server_ = std::make_unique<Server>(std::move(router), options_);
    server_->start();
    return *server_;
  }
  void await_waiting(int count) {
    for (int now = waiting_; now < count; now = waiting_) waiting_.wait(now);
  }
  [[nodiscard]] SocketClient client() const { return SocketClient(server_->port()); }
  [[nodiscard]] int status(std::string_view method, const std::string& target, const std::string& body = {},
                           const std::string& headers = {}) const {
    const std::optional<HttpAnswer> answer = client().ask(method, target, body, headers);
    return answer.has_value() ? answer->status : 0;
  }
  ~ServerTest() override {
    if (opened_.wait_for(0s) != std::future_status::ready) gate_.set_value();
  }

  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, AnswersOverOneConnectionAgainAndAgain) {
  start();
  SocketClient one = client();
  for (int i = 0; i < 100; ++i) {
    const auto answer = one.ask("POST", "/echo", "body " + std::to_string(i));
    ASSERT_TRUE(answer.has_value()) << i;
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, "body " + std::to_string(i));
  }
  EXPECT_EQ(server_->stats().connections, 1U);
  EXPECT_EQ(server_->stats().requests, 100U);
}

TEST_F(ServerTest, PathAndQueryAreDecoded) {
  start();
  EXPECT_EQ(client().ask("GET", "/echo?a=1&b=x%20y+z&c=%C3%BC&d")->body, "a=1;b=x y z;c=ü;d=;");
  EXPECT_EQ(client().ask("GET", "/echo/a%2Fb/x")->body, "name=a/b;") << "an encoded slash parts nothing";
  EXPECT_EQ(status("GET", "/echo//x"), 404) << "a name is not empty";
  EXPECT_EQ(status("GET", "/echo?a=%zz"), 400);
}

TEST_F(ServerTest, SaysWhatIsNotThere) {
  start();
  const auto missing = client().ask("GET", "/nothing").value();
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.header("Content-Type"), "application/problem+json");
  EXPECT_THAT(missing.body, HasSubstr(R"("code":"not-found")"));
  const auto wrong = client().ask("DELETE", "/echo").value();
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("Allow"), "GET, HEAD, POST");
  EXPECT_EQ(status("BREW", "/echo"), 405) << "a method nobody has heard of";
}

TEST_F(ServerTest, AnOversizedBodyIsRefusedBeforeItIsRead) {
  start();
  const auto announced = client().ask("POST", "/echo", std::string(5'000'000, 'x'));
  ASSERT_TRUE(announced.has_value()) << "the client sees the answer although it was still sending";
  EXPECT_EQ(announced->status, 413);
  EXPECT_EQ(announced->header("Connection"), "close");
  SocketClient chunked = client();
  chunked.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: "
      "chunked\r\n\r\n");
  const std::string chunk = "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
  for (int i = 0; i < 8; ++i) chunked.send(chunk);
  EXPECT_EQ(chunked.answer().value().status, 413) << "not announced, but noticed";
  EXPECT_EQ(client().ask("POST", "/echo", std::string(100'000, 'x'))->status, 200) << "the limit itself";
  EXPECT_EQ(status("GET", "/echo", {}, "Content-Length: 3\r\n"), 413) << "no body is expected here";
}

TEST_F(ServerTest, AChunkedBodyIsRead) {
  start();
  SocketClient one = client();
  one.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(one.answer().value().body, "abcde");
}

TEST_F(ServerTest, ExpectContinueIsAnswered) {
  start();
  SocketClient one = client();
  one.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 3\r\nExpect: "
      "100-continue\r\n\r\n");
  EXPECT_EQ(one.answer().value().status, 100);
  one.send("abc");
  EXPECT_EQ(one.answer().value().body, "abc");
  SocketClient large = client();
  large.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
      "3000000\r\nExpect: "
      "100-continue\r\n\r\n");
  EXPECT_EQ(large.answer().value().status, 413) << "without a byte of the body";
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  SocketClient one = client();
  std::string all;
  for (int i = 0; i < 50; ++i) {
    all += i % 2 == 0 ? "GET /echo?n=" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n"
                      : "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
                        "4\r\n\r\n" +
                            std::to_string(1000 + i);
  }
  ASSERT_TRUE(one.send(all));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(one.answer().value().body,
              i % 2 == 0 ? "n=" + std::to_string(i) + ";" : std::to_string(1000 + i));
  }
}

TEST_F(ServerTest, NonsenseIsRefused) {
  start();
  const std::vector<std::string> nonsense{
      "hello\r\n\r\n",
      "GET  HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\nHost x\r\n\r\n",
      std::string("\0\0\0\0\r\n\r\n", 8),
      "GET /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "GET /echo HTTP/1.1\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"};
  for (const std::string& bytes : nonsense) {
    SocketClient one = client();
    one.send(bytes);
    const auto answer = one.answer();
    ASSERT_TRUE(answer.has_value()) << bytes;
    EXPECT_EQ(answer->status, 400) << bytes;
    EXPECT_EQ(answer->header("Connection"), "close") << bytes;
    EXPECT_TRUE(one.at_end()) << bytes;
  }
  EXPECT_EQ(status("GET", "/echo"), 200) << "and the server is well";
}

TEST_F(ServerTest, AHugeHeaderIsRefused) {
  start();
  EXPECT_EQ(status("GET", "/echo", {}, "X-Large: " + std::string(100'000, 'x') + "\r\n"), 431);
  EXPECT_EQ(status("GET", "/echo?" + std::string(9'000, 'x')), 414);
  SocketClient endless = client();
  endless.send("GET /echo HTTP/1.1\r\n");
  const std::string line = "X-More: " + std::string(1000, 'y') + "\r\n";
  for (int i = 0; i < 20; ++i) endless.send(line);
  EXPECT_EQ(endless.answer().value().status, 431);
}

TEST_F(ServerTest, EndlessLinesFillNoMemory) {
  start();
  SocketClient header = client();
  header.send("GET /echo HTTP/1.1\r\n");
  for (int i = 0; i < 4000; ++i) header.send("X: y\r\n");
  EXPECT_EQ(header.answer().value().status, 431) << "each is short, all together are too long";
  SocketClient trailer = client();
  trailer.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: "
      "chunked\r\n\r\n1\r\nx\r\n0\r\n");
  const std::string line = "X-More: " + std::string(1000, 'y') + "\r\n";
  for (int i = 0; i < 200; ++i) trailer.send(line);
  EXPECT_EQ(trailer.answer().value().status, 400);
  SocketClient chunk = client();
  chunk.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: "
      "chunked\r\n\r\n1;");
  for (int i = 0; i < 200; ++i) chunk.send(std::string(1000, 'z'));
  EXPECT_EQ(chunk.answer().value().status, 400);
}

TEST_F(ServerTest, ASlowLorisIsCut) {
  options_.header_timeout = 50ms;
  options_.body_timeout = 50ms;
  start();
  SocketClient header = client();
  header.send("GET /echo HTTP/1.1\r\nHost: x\r\nX-Slow: ");
  EXPECT_TRUE(header.at_end());
  SocketClient body = client();
  body.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_TRUE(body.at_end());
}

TEST_F(ServerTest, ADripDoesNotKeepAHeaderAlive) {
  options_.header_timeout = 300ms;
  start();
  SocketClient one = client();
  one.send("GET /echo HTTP/1.1\r\nHost: x\r\nX-Slow: ");
  const auto begin = std::chrono::steady_clock::now();
  while (one.send("x") && std::chrono::steady_clock::now() - begin < 10s) {
    std::this_thread::sleep_for(5ms);  // this is the drip, not a wait for something
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s) << "the time counts from the first byte";
}

TEST_F(ServerTest, ARestingConnectionIsClosedInTheEnd) {
  options_.idle_timeout = 50ms;
  start();
  SocketClient fresh = client();
  SocketClient used = client();
  EXPECT_EQ(used.ask("GET", "/echo")->status, 200);
  EXPECT_TRUE(fresh.at_end());
  EXPECT_TRUE(used.at_end());
}

TEST_F(ServerTest, AClientThatDoesNotReadIsCut) {
  options_.write_timeout = 200ms;
  start();
  SocketClient lazy = client();
  std::string many;
  for (int i = 0; i < 40; ++i)
    many += "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";  // 36 MB: more than a socket holds
  lazy.send(many);
  while (server_->stats().connections > 0) std::this_thread::yield();
  EXPECT_EQ(server_->stats().body_bytes, 0U);
}

TEST_F(ServerTest, AHundredSlowClientsDoNotStopAFastOne) {
  start();
  std::vector<SocketClient> slow;
  for (int i = 0; i < 100; ++i) {
    slow.push_back(client());
    slow.back().send(i % 2 == 0 ? "GET /echo HTTP/1.1\r\nX-Slow: "
                                : "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                                  "Content-Length: 90000\r\n\r\n{");
  }
  SocketClient fast = client();
  for (int i = 0; i < 200; ++i) ASSERT_EQ(fast.ask("POST", "/echo", "fast")->body, "fast");
  EXPECT_EQ(server_->stats().connections, 101U);
}

TEST_F(ServerTest, SlowReadsDoNotHoldUpWritesAndAFullQueueSaysSo) {
  options_.read_workers = 2;
  options_.queue_capacity = 3;
  start();
  std::vector<SocketClient> readers;
  for (int i = 0; i < 5; ++i) {
    readers.push_back(client());
    readers.back().send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    if (i == 1) await_waiting(2);  // both workers are at it; the next three wait in the queue
  }
  while (server_->stats().requests < 5) std::this_thread::yield();
  EXPECT_EQ(status("POST", "/echo", "x"), 200) << "writes have workers of their own";
  EXPECT_EQ(status("GET", "/direct"), 200) << "and liveness needs none";
  const auto refused = client().ask("GET", "/echo").value();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  gate_.set_value();
  for (SocketClient& reader : readers) EXPECT_EQ(reader.answer().value().body, "waited");
}

TEST_F(ServerTest, BeyondTheLimitConnectionsWaitForTheirTurn) {
  options_.max_connections = 2;
  start();
  SocketClient first = client();
  SocketClient second = client();
  EXPECT_EQ(first.ask("GET", "/direct")->status, 200);
  EXPECT_EQ(second.ask("GET", "/direct")->status, 200);
  SocketClient third = client();
  third.send("GET /direct HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(second.ask("GET", "/direct")->status, 200);
  EXPECT_EQ(server_->stats().connections, 2U);
  first.close();
  EXPECT_EQ(third.answer().value().status, 200);
}

TEST_F(ServerTest, BodiesShareABudget) {
  options_.body_memory = 1U << 20U;
  start();
  std::vector<SocketClient> holders;
  for (int i = 0; i < 11; ++i) {  // each has sent most of its body, and sends no more
    holders.push_back(client());
    holders.back().send(
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 95000\r\n\r\n" +
        std::string(94'000, 'x'));
  }
  while (server_->stats().body_bytes < 11 * 94'000) std::this_thread::yield();
  const auto refused = client().ask("POST", "/echo", std::string(90'000, 'x'));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 503);
  EXPECT_EQ(status("POST", "/echo", "small"), 200) << "what fits is taken";
  holders.clear();
  while (server_->stats().body_bytes > 0) std::this_thread::yield();
  EXPECT_EQ(status("POST", "/echo", std::string(90'000, 'x')), 200);
}

TEST_F(ServerTest, AHandlerThatThrowsOrForgetsIsAnsweredFor) {
  start();
  const auto thrown = client().ask("GET", "/throw").value();
  EXPECT_EQ(thrown.status, 500);
  EXPECT_THAT(thrown.body, ::testing::Not(HasSubstr("secret")));
  EXPECT_EQ(status("GET", "/forget"), 500);
}

TEST_F(ServerTest, ForeignHostsAndPagesAreRefused) {
  options_.allowed_hosts = {"localhost", "127.0.0.1", "::1"};
  start();
  const auto with = [&](const std::string& headers) {
    SocketClient one = client();
    one.send("GET /direct HTTP/1.1\r\n" + headers + "\r\n");
    return one.answer().value().status;
  };
  EXPECT_EQ(with("Host: localhost:3000\r\n"), 200);
  EXPECT_EQ(with("Host: [::1]:3000\r\n"), 200);
  EXPECT_EQ(with("Host: evil.example\r\n"), 403) << "a name that was rebound to loopback";
  EXPECT_EQ(with("Host: localhost.evil.example\r\n"), 403);
  EXPECT_EQ(with("Host: \r\n"), 403);
  EXPECT_EQ(with("Host: localhost:3000\r\nOrigin: http://localhost:3000\r\n"), 200);
  EXPECT_EQ(with("Host: localhost:3000\r\nOrigin: http://localhost:5173\r\n"), 403) << "another server";
  EXPECT_EQ(with("Host: localhost\r\nOrigin: http://localhost:3000\r\n"), 403);
  EXPECT_EQ(with("Host: localhost:3000\r\nOrigin: http://127.0.0.1:3000\r\n"), 403);
  EXPECT_EQ(with("Host: localhost:80\r\nOrigin: http://localhost\r\n"), 200);
  EXPECT_EQ(with("Host: [::1]:3000\r\nOrigin: http://[::1]:3000\r\n"), 200);
  EXPECT_EQ(with("Host: localhost\r\nOrigin: https://evil.example\r\n"), 403);
  EXPECT_EQ(with("Host: localhost\r\nOrigin: null\r\n"), 403);
}

TEST_F(ServerTest, PagesMayComeFromAProxyByItsName) {
  options_.allowed_hosts = {"localhost", "events.example"};
  options_.public_hosts = {"events.example"};
  start();
  const auto with = [&](const std::string& origin) {
    SocketClient one = client();
    one.send("GET /direct HTTP/1.1\r\nHost: localhost:3000\r\nOrigin: " + origin + "\r\n\r\n");
    return one.answer().value().status;
  };
  EXPECT_EQ(with("https://events.example"), 200);
  EXPECT_EQ(with("https://events.example:8443"), 403);
  EXPECT_EQ(with("https://localhost"), 403);
}

TEST_F(ServerTest, Http10IsAnsweredAndClosed) {
  start();
  SocketClient one = client();
  one.send("GET /direct HTTP/1.0\r\n\r\n");
  EXPECT_EQ(one.answer().value().body, "ok");
  EXPECT_TRUE(one.at_end());
}

TEST_F(ServerTest, StopAnswersWhatHasBegunAndClosesWhatRests) {
  start();
  SocketClient resting = client();
  EXPECT_EQ(resting.ask("GET", "/direct")->status, 200);
  SocketClient busy = client();
  busy.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  await_waiting(1);
  auto stopped = std::async(std::launch::async, [&] { return server_->stop(10s); });
  EXPECT_TRUE(resting.at_end());
  gate_.set_value();
  const auto answer = busy.answer();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->body, "waited");
  EXPECT_EQ(answer->header("Connection"), "close");
  busy.close();
  EXPECT_TRUE(stopped.get()) << "nothing had to be cut";
  EXPECT_FALSE(client().connected());
  EXPECT_TRUE(server_->stop(0s)) << "again is harmless";
}

TEST_F(ServerTest, StopCutsWhatTakesTooLong) {
  start();
  SocketClient slow = client();
  slow.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{");
  while (server_->stats().requests == 0) std::this_thread::yield();
  EXPECT_FALSE(server_->stop(20ms));
  EXPECT_TRUE(slow.at_end());
}

TEST_F(ServerTest, StopUnderLoadLosesNoAnswer) {
  start();
  std::atomic<int> cut{0};
  std::atomic<int> served{0};
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 8; ++i) {
      clients.emplace_back([&] {
        SocketClient one = client();
        while (one.connected()) {
          if (!one.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
                        "3\r\n\r\nabc"))
            return;
          const auto answer = one.answer();
          if (!answer.has_value()) {
            ++cut;  // closed before it was read: allowed between two requests, and only then
            return;
          }
          EXPECT_EQ(answer->body, "abc");
          ++served;
          if (answer->header("Connection") == "close") return;
        }
      });
    }
    while (served < 200) std::this_thread::yield();
    EXPECT_TRUE(server_->stop(10s));
  }
  EXPECT_GE(served, 200);
  EXPECT_EQ(server_->stats().connections, 0U);
  EXPECT_LE(cut, 8);
}

TEST_F(ServerTest, AnAddressThatIsTakenIsReported) {
  start();
  options_.port = server_->port();
  Server second(Router{}, options_);
  try {
    second.start();
    FAIL() << "two listen on one port";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_THAT(error.what(), HasSubstr("another program may have the port"));
  }
}

}  // namespace
}  // namespace postrider::http
