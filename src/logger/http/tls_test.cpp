// SPDX-License-Identifier: Apache-2.0
// HTTPS against a real peer: whom the client trusts, and whom not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "logger/http/peer_fixture.hpp"
#include "postrider/async_logger.hpp"
#include "postrider/error.hpp"
#include "postrider/testing.hpp"
#include "support/temp_dir.hpp"

namespace postrider::logger {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct HttpTls : ::testing::Test {
  test::TempDir temp;
  const test::TlsIdentity authority = test::TlsIdentity::authority("our own authority");
  const test::TlsIdentity stranger = test::TlsIdentity::authority("somebody else's");
  const std::string ca_file = temp.file("ca.pem");

  void SetUp() override { authority.save_certificate(ca_file); }

  static std::string take(const PeerRequest& request, int) {
    return request.body.empty() ? Peer::answer(400) : Peer::answer(201, created);
  }
  /// Not delivered, for this reason, and without one byte of the event or the token having gone out.
  static void expect_refused(const test::TlsIdentity& identity, const std::string& ca,
                             const std::string& why) {
    Peer peer(take, &identity);
    const SendResult result = send_to(peer.url("https"), {one}, {.bearer_token = "secret", .ca_file = ca});
    EXPECT_EQ(result.verdict, SendVerdict::transient) << "nothing is wrong with the event: it is kept";
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.reason, HasSubstr(why));
    EXPECT_TRUE(peer.requests().empty());
  }
};

TEST_F(HttpTls, AnAuthorityOfOnesOwnIsTrustedThroughTheOption) {
  const test::TlsIdentity server = test::TlsIdentity::server(authority, "IP:127.0.0.1");
  Peer peer(take, &server);
  HttpEventLogClient client({.base_url = peer.url("https"), .bearer_token = "secret", .ca_file = ca_file});
  for (int i = 0; i < 3; ++i) {
    const SendResult result = client.send({{one}});
    EXPECT_EQ(result.verdict, SendVerdict::delivered) << result.reason;
  }
  ASSERT_EQ(peer.requests().size(), 3U);
  EXPECT_EQ(peer.connections(), 1) << "kept";
  EXPECT_THAT(peer.requests()[0].head, HasSubstr("Authorization: Bearer secret"));
}

TEST_F(HttpTls, AnAuthorityThatNobodyKnowsIsNotTrusted) {
  expect_refused(test::TlsIdentity::server(authority, "IP:127.0.0.1"), "", "certificate");
  expect_refused(test::TlsIdentity::server(stranger, "IP:127.0.0.1"), ca_file, "certificate");
}

TEST_F(HttpTls, ACertificateForAnotherHostIsNotTrusted) {
  expect_refused(test::TlsIdentity::server(authority, "DNS:eventlog.example.com"), ca_file, "127.0.0.1");
  expect_refused(test::TlsIdentity::server(authority, "IP:127.0.0.2"), ca_file, "127.0.0.1");
}

TEST_F(HttpTls, ACertificateThatHasExpiredIsNotTrusted) {
  expect_refused(test::TlsIdentity::server(authority, "IP:127.0.0.1", 1), ca_file, "expired");
}

TEST_F(HttpTls, AMissingFileOfAuthoritiesIsRefusedAtOnce) {
  try {
    const HttpEventLogClient client({.base_url = "https://x", .ca_file = temp.file("none.pem")});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("ca_file"));
    EXPECT_THAT(error.what(), HasSubstr("none.pem"));
  }
}

TEST_F(HttpTls, WhatAnUntrustedPeerDoesNotGetIsOnDiskAndComesWhenThePeerIsRight) {
  LoggerOptions options{.max_retries = 0, .max_batch_wait = 1ms, .spillover_path = temp.file("spill")};
  options.circuit_breaker_threshold = 1000;
  options.log = [](LogLevel, std::string_view) {};
  {
    const test::TlsIdentity wrong = test::TlsIdentity::server(stranger, "IP:127.0.0.1");
    Peer peer(take, &wrong);
    AsyncEventLogger logger(std::make_shared<HttpEventLogClient>(
                                HttpClientOptions{.base_url = peer.url("https"), .ca_file = ca_file}),
                            options);
    for (int i = 0; i < 5; ++i) {
      logger.log(EventLogEntry::process_step("p", "s"));
      ASSERT_TRUE(logger.flush());
    }
    EXPECT_EQ(logger.stats().on_disk, 5U);
    EXPECT_EQ(logger.stats().dead + logger.stats().all_lost(), 0U);
  }
  const test::TlsIdentity right = test::TlsIdentity::server(authority, "IP:127.0.0.1");
  postrider::testing::Signal all;
  std::atomic<int> taken{0};
  Peer peer(
      [&](const PeerRequest& request, int) {
        if (request.head.starts_with("POST /v1/events ")) {
          if (++taken == 5) all.set();
          return Peer::answer(201, created);
        }
        return Peer::answer(413);  // one by one
      },
      &right);
  AsyncEventLogger logger(std::make_shared<HttpEventLogClient>(
                              HttpClientOptions{.base_url = peer.url("https"), .ca_file = ca_file}),
                          options);
  logger.replay_soon();
  EXPECT_TRUE(all.await());
}

}  // namespace
}  // namespace postrider::logger
