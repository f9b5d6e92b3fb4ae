// SPDX-License-Identifier: Apache-2.0
// Parts of the sink that need no server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/error.hpp"
#include "publishers/redis/connection.hpp"
#include "publishers/redis/refusal.hpp"
#include "publishers/redis/settings.hpp"

namespace postrider::redis {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RedisUrl, IsRead) {
  const Settings whole = parse_url("redis://me:p%40ss%20word@example.org:7000/5");
  EXPECT_EQ(whole.host, "example.org");
  EXPECT_EQ(whole.port, 7000);
  EXPECT_EQ(whole.database, 5);
  EXPECT_EQ(whole.username, "me");
  EXPECT_EQ(whole.password, "p@ss word");
  EXPECT_EQ(whole.place(), "redis://example.org:7000") << "without secrets";
  const Settings least = parse_url("redis://localhost");
  EXPECT_EQ(least.port, 6379);
  EXPECT_EQ(least.database, 0);
  EXPECT_TRUE(least.username.empty() && least.password.empty());
  EXPECT_EQ(parse_url("redis://:pw@h/").password, "pw");
  EXPECT_EQ(parse_url("redis://[::1]:7").host, "::1");
  EXPECT_EQ(parse_url("redis://[::1]:7").place(), "redis://[::1]:7");
  const Settings local = parse_url("unix://me:pw@/run/redis.sock?db=2");
  EXPECT_EQ(local.socket, "/run/redis.sock");
  EXPECT_EQ(local.database, 2);
  EXPECT_EQ(local.username, "me");
  EXPECT_EQ(local.place(), "unix:///run/redis.sock");
}

TEST(RedisUrl, IsRefusedWithoutTellingIt) {
  const std::vector<std::string> all{
      "",
      "h3lo",
      "http://:h3lo@host",
      "redis:h3lo",
      "redis://:h3lo@",
      "redis://:h3lo@host:0",
      "redis://:h3lo@host:66000",
      "redis://:h3lo@host:12x",
      "redis://:h3lo@host:x/1",
      "redis://:h3lo@host/one",
      "redis://:h3lo@host/-1",
      "redis://:h3lo@host/1?x=2",
      "redis://:h3lo@host/1#2",
      "redis://h3 lo@host",
      "unix://:h3lo@",
      "unix://h3lo/run/redis.sock",
      "unix:///x?db=h3lo",
      "unix:///x?database=1",
      "unix:///" + std::string(200, 'x'),
  };
  for (const std::string& url : all) {
    try {
      (void)parse_url(url);
      ADD_FAILURE() << "accepted: " << url;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), Not(HasSubstr("h3lo")));
    }
  }
}

TEST(RedisUrl, SaysThatThereIsNoTls) {
  try {
    (void)parse_url("rediss://host");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("TLS"));
  }
}

TEST(RedisRefusal, KnowsWhoseFaultItIs) {
  EXPECT_THAT(refusal_of("OOM command not allowed when used memory > 'maxmemory'.").reason,
              HasSubstr("full"));
  EXPECT_TRUE(refusal_of("LOADING Redis is loading the dataset in memory").reconnect);
  EXPECT_TRUE(refusal_of("CLUSTERDOWN The cluster is down").reconnect);
  EXPECT_TRUE(refusal_of("MASTERDOWN Link with MASTER is down").reconnect);
  EXPECT_THAT(refusal_of("MOVED 3999 127.0.0.1:6381").reason, HasSubstr("cluster"));
  for (const char* no : {"OOM x", "LOADING x", "WRONGTYPE x", "NOPERM x", "ERR whatever", "", "\xff\xfe"}) {
    EXPECT_FALSE(refusal_of(no).of_the_event) << no;
  }
  EXPECT_TRUE(refusal_of("ERR Protocol error: invalid bulk length").of_the_event);
  EXPECT_FALSE(refusal_of("ERR Protocol error: unauthenticated bulk length").of_the_event);
  EXPECT_LT(refusal_of("ERR " + std::string(100'000, 'x')).reason.size(), 300U) << "bounded";
  EXPECT_THAT(login_refusal_of("p4ssword P4SSWORD").reason, Not(HasSubstr("4")));
}

TEST(RedisCommand, IsWrittenWithSizes) {
  std::string out = "x";
  append_command(out, {"SET", "", std::string_view("a\0\r\n", 4)});
  EXPECT_EQ(out, "x*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\0\r\n\r\n"s);
}

}  // namespace
}  // namespace postrider::redis
