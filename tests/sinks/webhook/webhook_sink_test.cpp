// SPDX-License-Identifier: Apache-2.0
#include "postrider/webhook_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "postrider/error.hpp"
#include "sinks/webhook/webhook_server.hpp"
#include "support/tls_identity.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = PublishResult::Kind;

class WebhookSinkTest : public ::testing::Test {
 protected:
  WebhookSinkOptions options(const std::string& path = "/") const {
    return {.url = server_.url(path),
            .timeout = 5s,
            .allow_private = true,
            .limits = {.breaker_threshold = 0, .log = [](LogLevel, std::string_view) {}}};
  }
  /// `run` of a key follow each other.
  static std::vector<Event> events(std::size_t count, std::size_t keys = 1, std::size_t run = 1) {
    std::vector<Event> all;
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(Event::builder("T")
                        .ordering_key("k" + std::to_string(i / run % keys))
                        .json("{\"number\":\"n" + std::to_string(i) + ".\"}")
                        .build());
    }
    return all;
  }
  static PublishResult send(Sink& sink, const std::vector<Event>& events) {
    std::vector<SinkMessage> messages;
    for (const Event& event : events) messages.push_back({.event = &event, .key = event.ordering_key()});
    return sink.send(messages);
  }
  PublishResult send_one(const std::string& path) { return send(*webhook_sink(options(path)), events(1)); }

  WebhookServer server_;
};

TEST_F(WebhookSinkTest, OneConnectionForAll) {
  const auto sink = webhook_sink(options());
  ASSERT_EQ(send(*sink, events(50)).kind(), Kind::all);
  ASSERT_EQ(send(*sink, events(50)).kind(), Kind::all);
  std::set<int> connections;
  for (const Posted& one : server_.posted()) connections.insert(one.connection);
  EXPECT_EQ(server_.posted().size(), 100U);
  EXPECT_EQ(connections.size(), 1U);
}

TEST_F(WebhookSinkTest, SendsIdTimeUserAgentAndTheOperatorsHeaders) {
  WebhookSinkOptions wanted = options("/hook?token=t0ken");
  ManualClock clock;
  wanted.limits.clock = &clock;
  wanted.headers = {{"Authorization", "Bearer s3cret"}, {"X-Empty", ""}, {"X-Team", "ours"}};
  const Event event = Event::builder("T").header("x-team", "theirs").header("empty", "").json("{}").build();
  ASSERT_EQ(send(*webhook_sink(wanted), {event}).kind(), Kind::all);
  ASSERT_EQ(server_.posted().size(), 1U);
  const Posted& one = server_.posted().front();
  EXPECT_EQ(one.path, "/hook?token=t0ken");
  EXPECT_EQ(one.headers.at("webhook-id"), event.id().view());
  EXPECT_EQ(one.headers.at("webhook-timestamp"), "1700000000");
  EXPECT_FALSE(one.headers.contains("webhook-signature")) << "without a secret";
  EXPECT_EQ(one.headers.at("authorization"), "Bearer s3cret");
  EXPECT_EQ(one.headers.at("x-empty"), "");
  EXPECT_EQ(one.headers.at("empty"), "");
  EXPECT_EQ(one.headers.at("x-team"), "ours") << "no event sets what the operator has set";
  EXPECT_THAT(one.headers.at("user-agent"), ::testing::MatchesRegex("postrider/[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_FALSE(one.headers.contains("expect"));
}

TEST_F(WebhookSinkTest, APrefixIsWhatWasTakenBeforeARefusal) {
  const auto sink = webhook_sink(options("/?status=422&only=n3."));
  const PublishResult result = send(*sink, events(6));
  EXPECT_EQ(result.kind(), Kind::refused);
  EXPECT_EQ(result.count(6), 3U);
  EXPECT_THAT(result.reason(), HasSubstr("HTTP 422"));
  EXPECT_EQ(server_.posted().size(), 4U) << "nothing after it";
}

TEST_F(WebhookSinkTest, OneThatItFailsWithIsTriedAgainUntilItIsClearThatItIsTheEvent) {
  const auto sink = webhook_sink(options("/?status=500&only=n3."));
  const std::vector<Event> all = events(6);
  const PublishResult first = send(*sink, all);
  EXPECT_EQ(first.kind(), Kind::unavailable);
  EXPECT_EQ(first.count(6), 3U) << "what came before it is sent";
  EXPECT_EQ(send(*sink, {all[3]}).kind(), Kind::unavailable) << "nothing was taken since";
  ASSERT_EQ(send(*sink, {all[4]}).kind(), Kind::all);
  const PublishResult second = send(*sink, {all[3]});
  EXPECT_EQ(second.kind(), Kind::refused);
  EXPECT_THAT(second.reason(), AllOf(HasSubstr("fails with it: HTTP 500"), HasSubstr("taken others")));
}

TEST_F(WebhookSinkTest, WhatSpeaksOfTheReceiverIsHeldAgainstNoEvent) {
  for (const char* const answer :
       {"status=408", "status=429", "status=503&retry-after=1", "status=500&retry-after=1"}) {
    WebhookSinkOptions wanted = options("/?" + std::string(answer) + "&only=n1.");
    ManualClock clock;
    wanted.limits.clock = &clock;
    const auto sink = webhook_sink(wanted);
    const std::vector<Event> all = events(2);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(send(*sink, {all[0]}).kind(), Kind::all);
      EXPECT_EQ(send(*sink, {all[1]}).kind(), Kind::unavailable) << answer;
      clock.advance(1s);
    }
  }
}

TEST_F(WebhookSinkTest, APauseIsKept) {
  WebhookSinkOptions wanted = options("/?status=429&retry-after=7&times=1");
  ManualClock clock;
  wanted.limits.clock = &clock;
  const auto sink = webhook_sink(wanted);
  const PublishResult result = send(*sink, events(3));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_EQ(result.count(3), 0U);
  EXPECT_EQ(result.retry_after(), 7s);
  EXPECT_FALSE(sink->healthy());
  EXPECT_EQ(send(*sink, events(3)).kind(), Kind::unavailable);
  EXPECT_EQ(server_.posted().size(), 1U) << "left in peace";
  clock.advance(7s);
  EXPECT_TRUE(sink->healthy());
  EXPECT_EQ(send(*sink, events(3)).kind(), Kind::all);
}

TEST_F(WebhookSinkTest, ADateIsAPauseAsWell) {
  WebhookSinkOptions wanted = options("/?status=503&retry-after=Tue,+14+Nov+2023+22:13:50+GMT");
  ManualClock clock;  // stands 30 s before
  wanted.limits.clock = &clock;
  EXPECT_EQ(send(*webhook_sink(wanted), events(1)).retry_after(), 30s);
}

TEST_F(WebhookSinkTest, GoneSwitchesItOff) {
  WebhookSinkOptions wanted = options("/secret-path?status=410&only=n2.");
  std::vector<std::string> told;
  wanted.limits.log = [&](LogLevel level, std::string_view text) {
    if (level == LogLevel::error) told.emplace_back(text);
  };
  const auto sink = webhook_sink(wanted);
  const PublishResult result = send(*sink, events(5));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_EQ(result.count(5), 2U);
  EXPECT_THAT(result.reason(), HasSubstr("410 Gone"));
  EXPECT_FALSE(sink->healthy());
  EXPECT_THAT(send(*sink, events(1)).reason(), HasSubstr("revive the sink"));
  EXPECT_EQ(server_.posted().size(), 3U) << "nothing is sent any more";
  ASSERT_EQ(told.size(), 1U) << "once";
  EXPECT_THAT(told.front(),
              AllOf(HasSubstr("410 Gone"), HasSubstr("'webhook'"), Not(HasSubstr("secret-path"))));
  EXPECT_TRUE(webhook_sink(wanted)->healthy());
}

TEST_F(WebhookSinkTest, OneThatIsGoneCanBeRevived) {
  WebhookSinkOptions wanted = options("/?status=410&only=n2.");
  std::vector<std::string> told;
  wanted.limits.log = [&](LogLevel, std::string_view text) { told.emplace_back(text); };
  const auto sink = webhook_sink(wanted);
  sink->revive();
  EXPECT_TRUE(told.empty()) << "there was nothing to revive";
  EXPECT_EQ(send(*sink, events(5)).count(5), 2U);
  EXPECT_FALSE(sink->healthy());
  sink->revive();
  EXPECT_TRUE(sink->healthy());
  EXPECT_THAT(told.back(), AllOf(HasSubstr("'webhook' is switched on again"), HasSubstr("410 Gone")));
  EXPECT_EQ(send(*sink, events(2)).kind(), Kind::all);
  EXPECT_THAT(told.back(), HasSubstr("'webhook' takes events again"));
}

TEST_F(WebhookSinkTest, AnAddressThatTheReceiverRepeatsIsNotShown) {
  const PublishResult result =
      send(*webhook_sink(options("/secret-path?status=404&echo=path&key=qs3cret")), events(1));
  EXPECT_THAT(result.reason(), AllOf(HasSubstr("404"), HasSubstr("you have sent ***"),
                                     Not(HasSubstr("secret-path")), Not(HasSubstr("qs3cret"))));
}

TEST_F(WebhookSinkTest, RedirectsAreNotFollowed) {
  const PublishResult result = send_one("/?status=307&location=" + server_.url("/elsewhere"));
  EXPECT_EQ(result.kind(), Kind::unavailable) << "a matter of configuration, not of the event";
  EXPECT_THAT(result.reason(), HasSubstr("redirect"));
  ASSERT_EQ(server_.posted().size(), 1U);
  EXPECT_THAT(server_.posted().front().path, HasSubstr("307"));
}

TEST_F(WebhookSinkTest, ALargeAnswerIsNotRead) {
  const auto sink = webhook_sink(options("/?body=50000000&times=1"));
  EXPECT_EQ(send(*sink, events(2)).kind(), Kind::all) << "its status has said what is to be known";
  ASSERT_EQ(server_.posted().size(), 2U);
  EXPECT_NE(server_.posted()[0].connection, server_.posted()[1].connection) << "the first was cut";
  EXPECT_EQ(send_one("/?status=500&body=50000000").kind(), Kind::unavailable);
  EXPECT_LT(send_one("/?status=400&body=50000000").reason().size(), 500U);
}

TEST_F(WebhookSinkTest, WhoNeverAnswersIsUnavailable) {
  WebhookSinkOptions wanted = options("/?never=1&only=n1.");
  wanted.timeout = 200ms;
  const PublishResult result = send(*webhook_sink(wanted), events(3));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_EQ(result.count(3), 1U);
  EXPECT_THAT(result.reason(), HasSubstr("timed out"));
}

TEST_F(WebhookSinkTest, CloseEndsARequestThatWaits) {
  WebhookSinkOptions wanted = options("/?never=1");
  wanted.timeout = 60s;
  const auto sink = webhook_sink(wanted);
  const auto begin = std::chrono::steady_clock::now();
  std::jthread sender([&] {
    const PublishResult result = send(*sink, events(1));
    EXPECT_EQ(result.kind(), Kind::unavailable);
    EXPECT_THAT(result.reason(), HasSubstr("closed"));
  });
  while (server_.posted().empty()) {
  }
  sink->close();
  sender.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(WebhookSinkTest, SeveralKeysAtOnceOneKeyInOrder) {
  WebhookSinkOptions wanted = options("/?together=4");  // the first answer comes when four are there
  wanted.parallel = 4;
  wanted.timeout = 30s;
  ASSERT_EQ(send(*webhook_sink(wanted), events(400, 7, 3)).kind(), Kind::all);
  std::map<std::string, int> last;
  ASSERT_EQ(server_.posted().size(), 400U);
  for (const Posted& one : server_.posted()) {
    const std::string key = one.headers.at("ce-partitionkey");
    EXPECT_THAT(one.beside, Each(Not(key))) << "never two of a key at once";
    EXPECT_LT(one.beside.size(), 4U);
    const int number = std::stoi(one.body.substr(one.body.find(":\"n") + 3));
    const auto [found, first] = last.try_emplace(key, number);
    EXPECT_TRUE(first || found->second < number) << key;
    found->second = number;
  }
}

TEST_F(WebhookSinkTest, InParallelARefusalIsToldOfTheRightOne) {
  // n19 is refused while n0 is on its way and n1 … n18 wait behind it.
  WebhookSinkOptions wanted = options("/?status=400&only=n19.&together=2");
  wanted.parallel = 2;
  const PublishResult result = send(*webhook_sink(wanted), events(20, 2, 19));
  EXPECT_EQ(result.kind(), Kind::refused) << result.reason();
  EXPECT_EQ(result.count(20), 19U);
  EXPECT_EQ(server_.posted().size(), 20U);
}

TEST_F(WebhookSinkTest, InParallelAKeyBehindAFailureIsNotSkipped) {
  // Two keys: n0 and n2 are of one, n1 and n3 of the other; the receiver is away for n1.
  WebhookSinkOptions wanted = options("/?status=500&only=n1.");
  wanted.parallel = 2;
  const std::vector<Event> all = events(4, 2);
  const PublishResult result = send(*webhook_sink(wanted), all);
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_LE(result.count(4), 1U);
  for (const Posted& one : server_.posted()) {
    EXPECT_NE(one.headers.at("webhook-id"), all[3].id().view()) << "never before n1";
  }
}

TEST_F(WebhookSinkTest, PrivateAddressesAreRefusedHoweverTheyAreWritten) {
  WebhookSinkOptions wanted = options();
  wanted.allow_private = false;
  const auto says_why = AllOf(HasSubstr("not an address of the public internet"), HasSubstr("allow_private"));
  for (const char* const host :
       {"127.0.0.1", "127.1", "0x7f.1", "2130706433", "017700000001", "[::ffff:127.0.0.1]", "[::1]",
        "0.0.0.0", "[::]", "10.1.2.3", "192.168.0.1", "169.254.169.254", "[fe80::1]", "[fd00::1]"}) {
    wanted.url = "http://" + std::string(host) + ":" + server_.port() + "/";
    try {
      (void)webhook_sink(wanted);
      ADD_FAILURE() << host;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << host;
      EXPECT_THAT(error.what(), says_why) << host;
    }
  }
  for (const char* const host : {"8.8.8.8", "[2606:4700::1111]", "10.example.org"}) {
    wanted.url = "http://" + std::string(host) + "/";
    EXPECT_NE(webhook_sink(wanted), nullptr) << host;
  }
  wanted.url =
      "http://localhost:" + server_.port() + "/";  // where a name leads is seen when it is connected to
  const PublishResult result = send(*webhook_sink(wanted), events(1));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), says_why);
  EXPECT_TRUE(server_.posted().empty());
}

TEST_F(WebhookSinkTest, TheEnvironmentsProxyIsNotUsed) {
  ASSERT_EQ(::setenv("http_proxy", "http://127.0.0.1:9", 1), 0);
  ASSERT_EQ(::setenv("ALL_PROXY", "http://127.0.0.1:9", 1), 0);
  EXPECT_EQ(send_one("/").kind(), Kind::all);
  ::unsetenv("http_proxy");
  ::unsetenv("ALL_PROXY");
}

TEST_F(WebhookSinkTest, NoSecretInAnyReason) {
  WebhookSinkOptions wanted = options("/p4th?status=422&echo=1&token=t0ken");
  wanted.headers = {{"Authorization", "Bearer s3cret"}};
  wanted.secrets = {"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="};
  const auto without = AllOf(Not(HasSubstr("s3cret")), Not(HasSubstr("t0ken")), Not(HasSubstr("p4th")),
                             Not(HasSubstr("MDEyMzQ1")));
  const PublishResult refused = send(*webhook_sink(wanted), events(1));
  EXPECT_EQ(refused.kind(), Kind::refused);
  EXPECT_THAT(refused.reason(), AllOf(HasSubstr("you have sent ***"), without));
  server_.kill();
  const PublishResult away = send(*webhook_sink(wanted), events(1));
  EXPECT_EQ(away.kind(), Kind::unavailable);
  EXPECT_THAT(away.reason(), AllOf(HasSubstr("127.0.0.1"), without));
}

TEST_F(WebhookSinkTest, TlsIsVerified) {
  const TempDir folder;
  const TlsIdentity authority = TlsIdentity::authority("authority");
  const TlsIdentity identity = TlsIdentity::server(authority, "IP:127.0.0.1");
  authority.save_certificate(folder.file("ca.pem"));
  identity.save_certificate(folder.file("cert.pem"));
  identity.save_key(folder.file("key.pem"));
  WebhookServer secure(folder.file("cert.pem"), folder.file("key.pem"));
  WebhookSinkOptions wanted = options();
  wanted.url = secure.url();

  const PublishResult unknown = send(*webhook_sink(wanted), events(1));
  EXPECT_EQ(unknown.kind(), Kind::unavailable);
  EXPECT_THAT(unknown.reason(), HasSubstr("ca_file"));
  wanted.url = "https://localhost:" + secure.port() + "/";
  wanted.ca_file = folder.file("ca.pem");
  EXPECT_EQ(send(*webhook_sink(wanted), events(1)).kind(), Kind::unavailable) << "of another name";
  EXPECT_TRUE(secure.posted().empty());

  wanted.url = secure.url();
  EXPECT_EQ(send(*webhook_sink(wanted), events(2)).kind(), Kind::all);
  wanted.ca_file.clear();
  wanted.verify_tls = false;
  EXPECT_EQ(send(*webhook_sink(wanted), events(1)).kind(), Kind::all);
  EXPECT_EQ(secure.posted().size(), 3U);
}

TEST_F(WebhookSinkTest, RefusesOptionsThatMakeNoSense) {
  const auto refused = [](WebhookSinkOptions wanted) -> std::string {
    try {
      (void)webhook_sink(std::move(wanted));
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  for (const char* const url :
       {"", "nonsense", "/path", "ftp://example.com/", "file:///etc/passwd", "http://", "http:///path",
        "http://example.com/#part", "http://exa mple.com/"}) {
    EXPECT_THAT(refused({.url = url}), HasSubstr("WebhookSinkOptions::url")) << url;
  }
  EXPECT_THAT(refused({.url = "https://user:passw0rd@example.com/"}),
              AllOf(HasSubstr("Authorization"), Not(HasSubstr("passw0rd"))));
  EXPECT_THAT(refused({.url = "https://example.com/" + std::string(3'000, 'x')}), HasSubstr("2048"));
  const std::string url = "https://example.com/hook";
  EXPECT_THAT(refused({.url = url, .secrets = {"whsec_nons3nse"}}),
              AllOf(HasSubstr("whsec_"), Not(HasSubstr("nons3nse"))));
  EXPECT_THAT(refused({.url = url, .headers = {{"X-Key", "va1ue\r\nX-Other: 1"}}}),
              AllOf(HasSubstr("X-Key"), Not(HasSubstr("va1ue"))));
  EXPECT_THAT(refused({.url = url, .headers = {{"X Key", "1"}}}), HasSubstr("headers"));
  for (const char* const name : {"Content-Type", "content-length", "CE-id", "Webhook-Signature", "Host"}) {
    EXPECT_THAT(refused({.url = url, .headers = {{name, "1"}}}), HasSubstr(name));
  }
  EXPECT_THAT(refused({.url = url, .parallel = 0}), HasSubstr("parallel"));
  EXPECT_THAT(refused({.url = url, .parallel = 65}), HasSubstr("parallel"));
  EXPECT_THAT(refused({.url = url, .timeout = 0s}), HasSubstr("timeout"));
  EXPECT_THAT(refused({.url = url, .connect_timeout = 1h}), HasSubstr("connect_timeout"));
  EXPECT_THAT(refused({.url = url, .ca_file = "/does/not/exist"}), HasSubstr("ca_file"));
  EXPECT_THAT(refused({.url = url, .cloud_events = {.source = "not a uri"}}), HasSubstr("source"));
  EXPECT_EQ(refused({.url = url}), "taken");
}

}  // namespace
}  // namespace postrider::test
