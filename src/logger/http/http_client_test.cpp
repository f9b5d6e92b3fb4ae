// SPDX-License-Identifier: Apache-2.0
// Against a real peer on loopback that misbehaves as it is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <future>

#include "logger/http/answer.hpp"
#include "logger/http/peer_fixture.hpp"
#include "postrider/async_logger.hpp"
#include "postrider/error.hpp"
#include "postrider/http_event_log_client.hpp"

namespace postrider::logger {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HttpClientTest, PostsOneOrABatchOverAKeptConnection) {
  const std::string results = R"({"results":[{"status":"created"},{"status":"duplicate"}]})";
  Peer peer([&](const PeerRequest& request, int) {
    return request.head.starts_with("POST /v1/events/batch ") ? Peer::answer(200, results)
                                                              : Peer::answer(201, created);
  });
  HttpEventLogClient client(
      {.base_url = peer.url() + "/", .bearer_token = "secret", .headers = {{"X-Mine", "yes"}}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.send({{one}}).verdict, SendVerdict::delivered);
    const SendResult batch = client.send({{one, two}});
    EXPECT_EQ(batch.verdict, SendVerdict::delivered);
    EXPECT_TRUE(batch.items.empty());
  }
  EXPECT_EQ(peer.connections(), 1);
  const auto requests = peer.requests();
  EXPECT_THAT(requests[0].head, HasSubstr("POST /v1/events HTTP/1.1"));
  EXPECT_THAT(requests[0].head, HasSubstr("Authorization: Bearer secret"));
  EXPECT_THAT(requests[0].head, HasSubstr("X-Mine: yes"));
  EXPECT_EQ(requests[0].body, R"({"step":"1","idempotencyKey":"k1"})");
  EXPECT_EQ(requests[1].body, R"([{"step":"1","idempotencyKey":"k1"},{"step":"2","idempotencyKey":"k2"}])");
}

TEST(HttpClientTest, EachStatusHasItsMeaning) {
  using V = SendVerdict;
  for (const auto& [status, verdict] : {std::pair{200, V::delivered},
                                        {201, V::delivered},
                                        {301, V::transient},
                                        {400, V::rejected},
                                        {401, V::transient},
                                        {403, V::transient},
                                        {404, V::transient},
                                        {408, V::transient},
                                        {409, V::rejected},
                                        {413, V::too_large},
                                        {422, V::rejected},
                                        {429, V::throttled},
                                        {500, V::transient},
                                        {502, V::transient},
                                        {503, V::transient}}) {
    Peer peer([code = status](const PeerRequest&, int) {
      return Peer::answer(code, R"({"id":"17","detail":"why"})");
    });
    const SendResult result = send_to(peer.url());
    EXPECT_EQ(result.verdict, verdict) << status;
    EXPECT_EQ(result.status, status);
    if (verdict == V::delivered) continue;
    EXPECT_THAT(result.reason, HasSubstr("why"));
  }
}

TEST(HttpClientTest, ASuccessThatIsNoJsonObjectDeliversNothing) {
  for (const char* body : {"<html>Please log in</html>", "", "[]", "\"ok\"", "{"}) {
    Peer peer([&](const PeerRequest&, int) { return Peer::answer(200, body); });
    const SendResult result = send_to(peer.url());
    EXPECT_EQ(result.verdict, SendVerdict::transient) << body;
    EXPECT_EQ(result.status, 200);
    EXPECT_THAT(result.reason, HasSubstr("the answer is no JSON object: '" + std::string(body) + "'"));
  }
  EXPECT_THAT(judge_answer(200, "<html>", "", 2, {}).reason, HasSubstr("no JSON object"));
}

/// Any page may be a JSON object: a proxy's, a health check's.
TEST(HttpClientTest, ASuccessThatSaysNothingOfTheEventDeliversNothing) {
  using V = SendVerdict;
  const auto judge = [](const char* body) { return judge_answer(200, body, "", 1, {}); };
  for (const char* good : {created, R"({"id":"4","status":"duplicate"})", R"({"status":"created"})",
                           R"({"id":17})", R"({"id":"17","processName":"Shop"})"}) {
    EXPECT_EQ(judge(good).verdict, V::delivered) << good;
  }
  for (const char* nothing : {"{}", R"({"id":null})", R"({"id":""})", R"({"ok":true})", R"({"status":200})",
                              R"({"status":"UP"})", R"({"id":"17","status":"later"})"}) {
    const SendResult result = judge(nothing);
    EXPECT_EQ(result.verdict, V::transient) << nothing;
    EXPECT_EQ(result.status, 200);
    EXPECT_THAT(result.reason, HasSubstr(nothing));
  }
  const SendResult refused = judge(R"({"status":"rejected","errors":[{"field":"/step"}]})");
  EXPECT_EQ(refused.verdict, V::rejected);
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.reason, HasSubstr("/step"));
}

TEST(HttpClientTest, RetryAfterIsHeard) {
  Peer peer([](const PeerRequest&, int) { return Peer::answer(429, "", "retry-AFTER:  7 \r\n"); });
  EXPECT_EQ(send_to(peer.url()).retry_after, 7s);
  const TimePoint now{784111777s};  // 1994-11-06T08:49:37Z
  const auto after = [&](const char* text) { return judge_answer(503, "", text, 1, now).retry_after; };
  EXPECT_EQ(after("Sun, 06 Nov 1994 08:49:47 GMT"), 10s);
  EXPECT_EQ(after("Sun, 06 Nov 1994 08:49:27 GMT"), std::nullopt) << "past";
  for (const char* bad : {"", "soon", "-1", "1x"}) EXPECT_EQ(after(bad), std::nullopt) << bad;
  EXPECT_EQ(after("0"), 0s);
}

TEST(HttpClientTest, AWishForAVeryLongPauseIsNotIgnored) {
  for (const char* text :
       {"86401", "99999999999999", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"})
    EXPECT_EQ(judge_answer(429, "", text, 1, TimePoint{784111777s}).retry_after, 24h) << text;
}

TEST(HttpClientTest, ASuccessMakesNoPause) {
  EXPECT_EQ(judge_answer(200, created, "7", 1, {}).retry_after, std::nullopt);
  EXPECT_EQ(judge_answer(200, R"({"results":[{"status":"created"},{"status":"rejected"}]})", "7", 2, {})
                .retry_after,
            std::nullopt);
}

TEST(HttpClientTest, EachEventOfABatchHasItsResult) {
  const auto judge = [](const char* body) { return judge_answer(200, body, "", 2, {}); };
  const SendResult mixed =
      judge(R"({"results":[{"status":"rejected","errors":[{"field":"/step"}]},{"status":"created"}]})");
  ASSERT_EQ(mixed.items.size(), 2U);
  EXPECT_EQ(mixed.items[0].verdict, SendVerdict::rejected);
  EXPECT_THAT(mixed.items[0].reason, HasSubstr("/step"));
  EXPECT_EQ(mixed.items[1].verdict, SendVerdict::delivered);
  for (const char* bad :
       {"", "[]", "{}", R"({"results":[]})", R"({"results":[{"status":"created"}]})", "<html>"}) {
    EXPECT_EQ(judge(bad).verdict, SendVerdict::transient) << bad << ": nobody knows what was stored";
  }
  EXPECT_EQ(judge(R"({"results":[{"status":"later"},{"status":"created"}]})").items[0].verdict,
            SendVerdict::transient);
}

/// The results of a batch may come in any order: `index` says whose they are.
TEST(HttpClientTest, ResultsOfABatchAreReadByTheirIndex) {
  using V = SendVerdict;
  const auto verdicts = [](const char* body) {
    const SendResult result = judge_answer(200, body, "", 3, {});
    std::vector<V> all(result.items.empty() ? 3 : 0, result.verdict);
    for (const SendItem& item : result.items) all.push_back(item.verdict);
    return all;
  };
  EXPECT_THAT(verdicts(R"({"results":[{"index":2,"status":"rejected"},{"index":0,"status":"created"},)"
                       R"({"index":1,"status":"created"}]})"),
              ElementsAre(V::delivered, V::delivered, V::rejected));
  EXPECT_THAT(verdicts(R"({"results":[{"index":2,"status":"created"},{"index":0,"status":"created"},)"
                       R"({"index":1,"status":"duplicate"}]})"),
              ElementsAre(V::delivered, V::delivered, V::delivered));
  EXPECT_THAT(verdicts(R"({"results":[{"index":2,"status":"created"},{"index":0,"status":"rejected"}]})"),
              ElementsAre(V::rejected, V::transient, V::delivered))
      << "nobody knows what became of 1";
  EXPECT_THAT(verdicts(R"({"results":[{"index":1,"status":"created"},{"index":1,"status":"rejected"},)"
                       R"({"index":0,"status":"created"},{"index":2,"status":"created"}]})"),
              ElementsAre(V::delivered, V::transient, V::delivered))
      << "1 has two";
  for (const char* wrong : {"3", "-1", "\"2\"", "1e300", "18446744073709551615", "2.5", "null"}) {
    const std::string body = R"({"results":[{"index":0,"status":"created"},{"index":1,"status":"created"},)"
                             R"({"index":)" +
                             std::string(wrong) + R"(,"status":"created"}]})";
    EXPECT_THAT(verdicts(body.c_str()), ElementsAre(V::delivered, V::delivered, V::transient)) << wrong;
  }
  EXPECT_THAT(
      verdicts(R"({"results":[{"index":0,"status":"created"},{"status":"created"},{"status":"created"}]})"),
      ElementsAre(V::delivered, V::transient, V::transient))
      << "some have one: a place says nothing";
}

TEST(HttpClientTest, NobodyThere) {
  std::string url;
  {
    Peer peer([](const PeerRequest&, int) { return ""; });
    url = peer.url();
  }
  const SendResult result = send_to(url);
  EXPECT_EQ(result.verdict, SendVerdict::transient);
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.reason, HasSubstr("127.0.0.1"));
}

TEST(HttpClientTest, APeerThatHangsIsCutOff) {
  Peer peer([](const PeerRequest&, int socket) {
    char byte = 0;
    (void)!::recv(socket, &byte, 1, 0);  // until somebody gives up
    return "";
  });
  EXPECT_EQ(send_to(peer.url(), {one}, {.request_timeout = 50ms}).verdict, SendVerdict::transient);
}

TEST(HttpClientTest, ACancelEndsWhatIsUnderWayAndNothingElse) {
  std::promise<void> asked;
  std::atomic<bool> hangs{true};
  Peer peer([&](const PeerRequest&, int socket) {
    if (!hangs.exchange(false)) return Peer::answer(201, created);
    asked.set_value();
    char byte = 0;
    (void)!::recv(socket, &byte, 1, 0);  // until somebody gives up
    return std::string();
  });
  HttpEventLogClient client({.base_url = peer.url(), .request_timeout = 60s});
  std::future<SendResult> first = std::async(std::launch::async, [&] { return client.send({{one}}); });
  asked.get_future().wait();
  client.cancel();
  ASSERT_EQ(first.wait_for(30s), std::future_status::ready);
  EXPECT_EQ(first.get().verdict, SendVerdict::transient);
  EXPECT_EQ(client.send({{one}}).verdict, SendVerdict::delivered);
}

TEST(HttpClientTest, APeerThatIsSlowByBytesIsCutOff) {
  Peer peer([](const PeerRequest&, int socket) {
    const std::string head = "HTTP/1.1 201 X\r\nContent-Length: 100000\r\n\r\n";
    (void)!::send(socket, head.data(), head.size(), MSG_NOSIGNAL);
    // A byte at a time, until the other side has had enough.
    while (::send(socket, "x", 1, MSG_NOSIGNAL) == 1) std::this_thread::sleep_for(5ms);
    return "";
  });
  EXPECT_EQ(send_to(peer.url(), {one}, {.request_timeout = 100ms}).verdict, SendVerdict::transient);
}

TEST(HttpClientTest, AConnectionResetInTheMiddleOfAnAnswer) {
  Peer peer([](const PeerRequest&, int socket) {
    const std::string half = "HTTP/1.1 201 X\r\nContent-Length: 100\r\n\r\nhalf";
    (void)!::send(socket, half.data(), half.size(), MSG_NOSIGNAL);
    const linger now{1, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    return "";
  });
  EXPECT_EQ(send_to(peer.url()).verdict, SendVerdict::transient)
      << "stored or not: it is sent again with its key";
}

TEST(HttpClientTest, BadTls) {
  Peer peer([](const PeerRequest&, int) { return Peer::answer(201); });
  EXPECT_EQ(send_to(peer.url("https"), {one}, {.connect_timeout = 500ms, .request_timeout = 1s}).verdict,
            SendVerdict::transient);
  EXPECT_THAT(peer.requests(), ElementsAre()) << "nothing goes out in plain text";
}

TEST(HttpClientTest, RedirectsAreNotFollowed) {
  Peer peer([](const PeerRequest&, int) { return Peer::answer(302, "", "Location: /elsewhere\r\n"); });
  EXPECT_EQ(send_to(peer.url()).verdict, SendVerdict::transient);
  EXPECT_EQ(peer.requests().size(), 1U);
}

TEST(HttpClientTest, AnAnswerWithoutEndIsNotRead) {
  Peer peer([](const PeerRequest&, int) { return Peer::answer(201, std::string(8 << 20, 'x')); });
  EXPECT_EQ(send_to(peer.url()).verdict, SendVerdict::transient);
}

TEST(HttpClientTest, BodiesAreCompressedWhenAskedFor) {
  Peer peer([](const PeerRequest&, int) { return Peer::answer(201, created); });
  EXPECT_EQ(send_to(peer.url(), {one}, {.gzip = true}).verdict, SendVerdict::delivered);
  const auto requests = peer.requests();
  EXPECT_THAT(requests[0].head, HasSubstr("Content-Encoding: gzip"));
  z_stream stream{};
  ASSERT_EQ(::inflateInit2(&stream, 15 + 16), Z_OK);
  std::string in = requests[0].body;
  std::string out(1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::inflateEnd(&stream);
  EXPECT_EQ(out, R"({"step":"1","idempotencyKey":"k1"})");
}

TEST(HttpClientTest, OAuthTokensAreFetchedOnceAndAgainBeforeTheyEnd) {
  std::atomic<int> tokens{0};
  std::atomic<bool> revoked{false};
  Peer peer([&](const PeerRequest& request, int) {
    if (request.head.starts_with("POST /token ")) {
      ++tokens;
      const std::string seconds = tokens == 1 ? "3600" : "10";  // the second one: within the refresh time
      return Peer::answer(
          200, R"({"access_token":"t)" + std::to_string(tokens) + R"(","expires_in":)" + seconds + "}");
    }
    if (revoked.exchange(false)) return Peer::answer(401);
    return Peer::answer(201, created);
  });
  HttpClientOptions options{.base_url = peer.url()};
  options.oauth = {
      .token_url = peer.url() + "/token", .client_id = "me", .client_secret = "s", .scope = "a b"};
  HttpEventLogClient client(options);
  EXPECT_EQ(client.send({{one}}).verdict, SendVerdict::delivered);
  EXPECT_EQ(client.send({{one}}).verdict, SendVerdict::delivered);
  EXPECT_EQ(tokens, 1);
  revoked = true;
  EXPECT_EQ(client.send({{one}}).verdict, SendVerdict::delivered) << "a new token, and once more";
  EXPECT_EQ(tokens, 2);
  EXPECT_EQ(client.send({{one}}).verdict, SendVerdict::delivered);
  EXPECT_EQ(tokens, 3) << "it would have ended within 30 s";
  const auto requests = peer.requests();
  EXPECT_EQ(requests[0].body, "grant_type=client_credentials&scope=a%20b");
  EXPECT_THAT(requests[0].head, HasSubstr("Authorization: Basic bWU6cw=="));
  EXPECT_THAT(requests[1].head, HasSubstr("Authorization: Bearer t1"));
}

TEST(HttpClientTest, OneThatIsSwitchedOffNeedsNoAddressAndSendsNothing) {
  HttpEventLogClient client({.enabled = false});
  EXPECT_EQ(client.send({{one}}).verdict, SendVerdict::transient);
}

TEST(HttpClientTest, OAuthWithoutItsAddressIsRefused) {
  HttpClientOptions options{.base_url = "http://a"};
  options.oauth.client_id = "me";
  EXPECT_THROW(HttpEventLogClient{options}, Error);
}

TEST(HttpClientTest, OptionsThatCannotBeAreRefused) {
  try {
    const HttpEventLogClient client({.base_url = "http://x", .oauth = {.token_url = "ftp://x"}});
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "postrider: HttpClientOptions::oauth.token_url is refused: it must begin with http:// or "
        "https://. Hint: it is oauth-token-url below [eventlog] of a file, EVENTLOG_OAUTH_TOKEN_URL in "
        "the environment");
  }
  EXPECT_THROW(HttpEventLogClient({.base_url = ""}), Error);
  EXPECT_THROW(HttpEventLogClient({.base_url = "file:///etc/passwd"}), Error);
  EXPECT_THROW(HttpEventLogClient({.base_url = "http://x", .bearer_token = "a\r\nX: y"}), Error);
  EXPECT_THROW(HttpEventLogClient({.base_url = "http://x", .headers = {{"a\nb", "c"}}}), Error);
  EXPECT_THROW(HttpEventLogClient({.base_url = "http://x", .request_timeout = 0s}), Error);
}

TEST(HttpClientTest, TheLoggerDeliversThroughIt) {
  Peer peer([](const PeerRequest& request, int) {
    if (request.head.starts_with("POST /v1/events ")) return Peer::answer(201, created);
    std::string results;
    const auto events = std::count(request.body.begin(), request.body.end(), '{');
    for (std::ptrdiff_t i = 0; i < events; ++i)
      results += std::string(i > 0 ? "," : "") + R"({"status":"created"})";
    return Peer::answer(200, R"({"results":[)" + results + "]}");
  });
  AsyncEventLogger logger(std::make_shared<HttpEventLogClient>(HttpClientOptions{.base_url = peer.url()}),
                          {.max_batch_wait = 1ms});
  for (int i = 0; i < 120; ++i) logger.log(EventLogEntry::process_step("p", "s"));
  EXPECT_TRUE(logger.flush());
  EXPECT_EQ(logger.stats().delivered, 120U);
}

}  // namespace
}  // namespace postrider::logger
