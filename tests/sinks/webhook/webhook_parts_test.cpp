// SPDX-License-Identifier: Apache-2.0
// The parts of the webhook sink that need no network.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "publishers/key_order.hpp"
#include "publishers/webhook/address.hpp"
#include "publishers/webhook/secrets.hpp"
#include "publishers/webhook/signature.hpp"
#include "publishers/webhook/verdict.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Verdict = WebhookVerdict::Kind;

constexpr TimePoint monday_noon{1'780'315'200s};  // Mon, 01 Jun 2026 12:00:00 GMT

bool is_public(const std::string& text) {
  sockaddr_storage storage{};
  if (text.find(':') == std::string::npos) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    EXPECT_EQ(::inet_pton(AF_INET, text.c_str(), &in.sin_addr), 1) << text;
    std::memcpy(&storage, &in, sizeof in);
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &in.sin6_addr), 1) << text;
    std::memcpy(&storage, &in, sizeof in);
  }
  const auto& address = reinterpret_cast<const sockaddr&>(storage);
  EXPECT_EQ(address_text(address).empty(), false);
  return public_address(address);
}

TEST(WebhookAddress, PrivateLocalAndReservedOnesAreNotPublic) {
  for (const char* const text : {"0.0.0.0",
                                 "0.1.2.3",
                                 "10.0.0.1",
                                 "10.255.255.255",
                                 "100.64.0.1",
                                 "100.100.100.200",
                                 "100.127.255.255",
                                 "127.0.0.1",
                                 "127.255.0.3",
                                 "168.63.129.16",
                                 "169.254.0.1",
                                 "169.254.169.254",
                                 "172.16.0.1",
                                 "172.31.255.255",
                                 "192.0.0.1",
                                 "192.0.2.7",
                                 "192.168.1.1",
                                 "198.18.0.1",
                                 "198.19.255.255",
                                 "198.51.100.1",
                                 "203.0.113.9",
                                 "224.0.0.1",
                                 "239.255.255.255",
                                 "240.0.0.1",
                                 "255.255.255.255",
                                 "::",
                                 "::1",
                                 "::ffff:127.0.0.1",
                                 "::ffff:10.1.2.3",
                                 "::127.0.0.1",
                                 "::ffff:a9fe:a9fe",
                                 "64:ff9b::7f00:1",
                                 "64:ff9b:1::1",
                                 "100::1",
                                 "2001::1",
                                 "2001:db8::1",
                                 "2002:7f00:1::",
                                 "2002:a00:1::1",
                                 "3fff::1",
                                 "fc00::1",
                                 "fd00:ec2::254",
                                 "fe80::1",
                                 "febf::1",
                                 "fec0::1",
                                 "ff02::1"}) {
    EXPECT_FALSE(is_public(text)) << text;
  }
}

TEST(WebhookAddress, TheRestIsPublic) {
  for (const char* const text : {"1.1.1.1",          "9.255.255.255",   "11.0.0.0",
                                 "100.63.255.255",   "100.128.0.0",     "126.255.255.255",
                                 "128.0.0.1",        "168.63.129.15",   "169.253.255.255",
                                 "169.255.0.0",      "172.15.255.255",  "172.32.0.0",
                                 "192.167.255.255",  "192.169.0.0",     "198.17.255.255",
                                 "198.20.0.0",       "223.255.255.255", "::ffff:8.8.8.8",
                                 "64:ff9b::808:808", "2002:808:808::1", "2001:4860:4860::8888",
                                 "2606:4700::1111",  "2a00::1"}) {
    EXPECT_TRUE(is_public(text)) << text;
  }
}

TEST(WebhookAddress, OtherFamiliesAreNot) {
  sockaddr local{};
  local.sa_family = AF_UNIX;
  EXPECT_FALSE(public_address(local));
}

// The example of the Standard Webhooks specification.
TEST(WebhookSignature, IsWhatTheSpecificationSays) {
  const auto key = WebhookSigner::key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->size(), 24U);
  const WebhookSigner signer({*key});
  EXPECT_EQ(signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(WebhookSignature, OneForEachKeyInTheirOrder) {
  const std::string a(24, 'a');
  const std::string b(64, 'b');
  EXPECT_EQ(WebhookSigner({a, b}).sign("id", "1", "x"),
            WebhookSigner({a}).sign("id", "1", "x") + " " + WebhookSigner({b}).sign("id", "1", "x"));
  EXPECT_FALSE(WebhookSigner({}).signs());
}

TEST(WebhookSignature, RefusesWhatIsNoSecret) {
  for (const char* const secret :
       {"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "whsec_c2hvcnQ=", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS\n",
        "whsec_====MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2Lb===="}) {
    EXPECT_FALSE(WebhookSigner::key_of(secret)) << secret;
  }
  EXPECT_FALSE(WebhookSigner::key_of("whsec_" + std::string(88, 'A'))) << "66 bytes";
}

TEST(WebhookSecrets, AreTheAddressAndItsPartsAsWrittenAndAsMeant) {
  const std::vector<std::string> secrets = webhook_secrets(
      {.url = "https://example.org/hooks/T0PS3CRET/in%2Fside?k=qs3cret&v=1&pass=a%20b%20c%20d",
       .headers = {{"Authorization", "Bearer t0ken"}}});
  EXPECT_THAT(secrets, ::testing::IsSupersetOf({"/hooks/T0PS3CRET/in%2Fside", "T0PS3CRET", "in%2Fside",
                                                "in/side", "k=qs3cret&v=1&pass=a%20b%20c%20d", "qs3cret",
                                                "a%20b%20c%20d", "a b c d", "Bearer t0ken", "t0ken"}));
  EXPECT_THAT(secrets, ::testing::Not(::testing::Contains("1"))) << "it would take words apart";
  EXPECT_THAT(secrets, ::testing::Not(::testing::Contains("hooks")));
  EXPECT_TRUE(std::is_sorted(secrets.begin(), secrets.end(), [](const auto& a, const auto& b) {
    return a.size() > b.size();
  })) << "the whole before its parts";
}

TEST(WebhookVerdict, ByStatus) {
  const auto kind = [](int status) { return judge_webhook(status, "", "", monday_noon).kind; };
  for (const int status : {200, 201, 202, 204, 299}) EXPECT_EQ(kind(status), Verdict::taken) << status;
  for (const int status : {400, 405, 409, 413, 415, 422, 451})
    EXPECT_EQ(kind(status), Verdict::refused) << status;
  for (const int status : {301, 302, 303, 307, 308, 304, 401, 403, 404, 408, 425, 429})
    EXPECT_EQ(kind(status), Verdict::unavailable) << status;
  for (const int status : {500, 501, 502, 503, 504, 599}) EXPECT_EQ(kind(status), Verdict::unclear) << status;
  for (const int status : {500, 503})
    EXPECT_EQ(judge_webhook(status, "5", "", monday_noon).kind, Verdict::unavailable) << "it has said when";
  EXPECT_EQ(kind(410), Verdict::gone);
}

TEST(WebhookVerdict, RetryAfterAsSecondsOrDate) {
  const auto pause = [](std::string_view text, int status = 429) {
    return judge_webhook(status, text, "", monday_noon).retry_after;
  };
  EXPECT_EQ(pause("120"), 120s);
  EXPECT_EQ(pause("120", 503), 120s);
  EXPECT_EQ(pause("Mon, 01 Jun 2026 12:00:30 GMT"), 30s);
  EXPECT_EQ(pause("Mon, 01 Jun 2026 11:59:30 GMT"), 0s) << "over";
  EXPECT_EQ(pause("Mon, 01 Jun 2099 11:59:30 GMT"), 1h) << "not for ever";
  EXPECT_EQ(pause("3600"), 1h);
  EXPECT_EQ(pause("86400", 503), 1h);
  EXPECT_EQ(pause("9223372036854775807"), 1h);
  EXPECT_EQ(pause("99999999999999999999999999"), 1h);
  EXPECT_EQ(pause(""), 0s);
  EXPECT_EQ(pause("-5"), 0s);
  EXPECT_EQ(pause("soon"), 0s);
}

TEST(WebhookVerdict, SaysWhyInOneLine) {
  const WebhookVerdict verdict =
      judge_webhook(422, "", "no\nsuch\x01 order \xff" + std::string(1'000, 'x'), monday_noon);
  EXPECT_THAT(verdict.why, HasSubstr("HTTP 422: no such  order "));
  EXPECT_LT(verdict.why.size(), 400U);
}

TEST(WebhookKeyOrder, OneOfEachKeyAtATimeLowestFirst) {
  const std::vector<std::string> keys{"a", "b", "a", "", "b", "", "a"};
  std::vector<SinkMessage> messages;
  for (const std::string& key : keys) messages.push_back({.key = key});
  KeyOrder order(messages);
  const auto take = [&] {
    const auto next = order.peek();
    if (next) order.take();
    return next ? static_cast<int>(*next) : -1;
  };
  EXPECT_EQ(take(), 0);
  EXPECT_EQ(take(), 1);
  EXPECT_EQ(take(), 3) << "has no key";
  EXPECT_EQ(take(), 5);
  EXPECT_EQ(take(), -1) << "the others wait for theirs";
  order.done(1);
  EXPECT_EQ(take(), 4);
  order.done(0);
  order.done(4);
  EXPECT_EQ(take(), 2);
  EXPECT_EQ(take(), -1);
  order.done(2);
  EXPECT_EQ(take(), 6);
  order.done(6);
  EXPECT_EQ(take(), -1);
}

TEST(WebhookKeyOrder, StrictlyIsAsIfAllWereOneKey) {
  const std::vector<SinkMessage> messages(3);
  KeyOrder order(messages, KeyOrder::Rule::as_one_key);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(order.peek(), i);
    order.take();
    EXPECT_FALSE(order.peek());
    order.done(i);
  }
}

}  // namespace
}  // namespace postrider::test
