// SPDX-License-Identifier: Apache-2.0
// Every route with nonsense: whatever comes, the answer is a problem that says what is wrong and what to do,
// never an error of the server, never silence; and the next client is served.
#include <gmock/gmock.h>

#include "app/api/event_log_api_fixture.hpp"
#include "app/http/gzip_fixture.hpp"

namespace postrider::api {
namespace {

using ::testing::HasSubstr;

class HostileInput : public EventLogApiTest {
 protected:
  /// A refusal with all that belongs to it. Returns its code.
  static std::string code_of(const HttpAnswer& answer, const std::string& what) {
    SCOPED_TRACE(what.substr(0, 300));
    EXPECT_GE(answer.status, 400);
    EXPECT_LT(answer.status, 500) << answer.body;
    EXPECT_EQ(answer.header("Content-Type"), "application/problem+json");
    json::error_code error;
    const json::value body = json::parse(answer.body, error);
    if (error || !body.is_object()) {
      ADD_FAILURE() << "no JSON: " << answer.body;
      return {};
    }
    for (const char* member : {"type", "title", "code", "detail", "hint"}) {
      EXPECT_TRUE(body.as_object().contains(member)) << member << " is missing in " << answer.body;
    }
    EXPECT_EQ(body.at("status").as_int64(), answer.status);
    return body.at("code").as_string().c_str();
  }
  /// Sends bytes as they are, and expects to be refused with this code.
  void expect_refused(const std::string& bytes, const std::string& code) {
    SocketClient client(server_->port());
    client.send(bytes);
    const std::optional<HttpAnswer> answer = client.answer();
    ASSERT_TRUE(answer.has_value()) << "no answer to " << bytes.substr(0, 200);
    EXPECT_EQ(code_of(*answer, bytes), code) << bytes.substr(0, 200);
  }
  void expect_refused(std::string_view method, const std::string& target, const std::string& body,
                      const std::string& code) {
    EXPECT_EQ(code_of(ask(method, target, body), std::string(method) + " " + target + "\n" + body), code)
        << target << " " << body.substr(0, 200);
  }
  /// A body for POST /v1/events, chunked as it is given.
  static std::string chunked(const std::string& chunks) {
    return "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
           "Transfer-Encoding: chunked\r\n\r\n" +
           chunks;
  }
  static std::string with_headers(const std::string& headers, const std::string& rest = {}) {
    return "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers +
           "\r\n" + rest;
  }
  void TearDown() override {
    if (server_ != nullptr) {
      EXPECT_EQ(ask("GET", "/livez").status, 200) << "and the next one is served";
    }
    EventLogApiTest::TearDown();
  }
};
POSTRIDER_FOR_EACH_BACKEND(HostileInput);

TEST_P(HostileInput, ParametersOfASearch) {
  const std::string huge(400, '9');
  for (const std::string& query :
       std::vector<std::string>{"from=" + huge,
                                "to=-" + huge,
                                "from=-0001-01-01T00:00:00Z",
                                "from=0999-12-31T23:59:59Z",
                                "to=10000-01-01T00:00:00Z",
                                "to=9999-12-31T23:59:59-00:01",
                                "from=1e400",
                                "from=",
                                "to=0",
                                "from=2026-02-30T00:00:00Z",
                                "from=2026-06-01T24:00:00Z",
                                "from=2026-06-01T10:15:30.1234567890Z",
                                "limit=" + huge,
                                "limit=-1",
                                "limit=0x10",
                                "limit=1e2",
                                "limit=%2B5",
                                "limit=+5",
                                "limit=5%00",
                                "cursor=" + huge,
                                "cursor=a" + huge + ".1",
                                "cursor=a1." + huge,
                                "cursor=a-9223372036854775808.1",
                                "cursor=a9223372036854775807.9223372036854775807",
                                "cursor=a.",
                                "cursor=.",
                                "cursor=a1.0",
                                "cursor=%00",
                                "cursor=a1%2E1",
                                "correlationId=%C0%80",
                                "correlationId=%ED%A0%80",
                                "applicationId=%F4%90%80%80",
                                "applicationId=%FF%FE",
                                "text=",
                                "text=ab",
                                "text=%22",
                                "text=***",
                                "text=a%00bc",
                                "text=" + std::string(81, 'x'),
                                "order=",
                                "order=ASC",
                                "=1",
                                "&&=",
                                "limit",
                                "text=one+two+three+four+five+six+seven+eight+nine+ten+eleven",
                                "unknown=1",
                                "%00=1"}) {
    expect_refused("GET", "/v1/events?" + query, {}, "invalid-parameter");
  }
  std::string many = "/v1/events?";
  for (int i = 0; i < 1000; ++i) many += "a=1&";
  expect_refused("GET", many, {}, "invalid-parameter");
}

TEST_P(HostileInput, WordsThatLookLikeTheLanguageOfASearch) {
  ASSERT_EQ(ask("POST", "/v1/events", event(R"(,"details":"plain words")")).status, 201);
  for (const std::string& text : {
           std::string("NEAR(plain+words)"),
           std::string("plain+AND+NOT+words"),
           std::string("plain%22words"),
           std::string("plain*"),
           std::string("%2Bplain+-words"),
           std::string("(plain)+%3C%3E~%40words"),
           std::string("plain'%3Bdrop+table+x--"),
           std::string("plain%5C"),
           std::string("details:plain"),
           std::string("%E2%80%9C%E2%80%9C%E2%80%9C"),           // quotation marks beyond ASCII
           std::string("%F0%9F%8E%AF%F0%9F%8E%AF%F0%9F%8E%AF"),  // no letters at all
           std::string("%EF%BF%BF%EF%BF%BF%EF%BF%BF"),
           std::string("a%CC%81%CC%81%CC%81"),
           std::string("%C2%A0%C2%A0%C2%A0"),
           std::string("%E2%80%8B%E2%80%8B%E2%80%8B"),
           std::string("%25%25%25+___+plain"),
       }) {
    const HttpAnswer answer = ask("GET", "/v1/events?text=" + text);
    EXPECT_TRUE(answer.status == 200 || answer.status == 400) << text << ": " << answer.body;
  }
  EXPECT_EQ(found("?text=plain%22%29+OR+words", "details").size(), 0U) << "OR is a word, and not there";
  EXPECT_EQ(found("?text=plain+words", "details").size(), 1U);
}

TEST_P(HostileInput, ACursorOfAnotherQuery) {
  std::string batch;
  for (int i = 0; i < 4; ++i) batch += (i > 0 ? "," : "[") + event();
  ASSERT_EQ(ask("POST", "/v1/events/batch", batch + "]").status, 200);
  const HttpAnswer page = ask("GET", "/v1/events?correlationId=a1b2&limit=2");
  const std::string cursor(object(page).at("nextCursor").as_string().c_str());
  EXPECT_EQ(ask("GET", "/v1/events?correlationId=a1b2&limit=1&cursor=" + cursor).status, 200)
      << "another limit is fine";
  for (const char* other :
       {"correlationId=other", "limit=2", "correlationId=a1b2&order=desc",
        "correlationId=a1b2&applicationId=x", "applicationId=a1b2",
        "correlationId=a1b2&from=2026-06-01T10:15:30Z", "correlationId=a1b2&to=2026-06-01T10:15:30Z",
        "correlationId=a1b2&text=CreateBooking"}) {
    expect_refused("GET", "/v1/events?" + std::string(other) + "&cursor=" + cursor, {}, "invalid-parameter");
  }
}

TEST_P(HostileInput, IdsOfEvents) {
  for (const char* id :
       {"0", "-1", "1.0", "1e3", "0x1", "9223372036854775808", "99999999999999999999999", "%00", "1%00",
        "%2e%2e", "..", "null", "%C0%80", "1;drop", "%F0%9F%8E%AF", "+1", "1%20"}) {
    expect_refused("GET", std::string("/v1/events/") + id, {}, "no-such-event");
  }
  expect_refused("GET", "/v1/events/1/2", {}, "not-found");
  expect_refused("GET", "/v1/events/", {}, "not-found");
  expect_refused("GET", "//v1/events", {}, "not-found");
  expect_refused("GET", "/V1/events", {}, "not-found");
  expect_refused("GET", "/v1%2Fevents", {}, "not-found");
}

TEST_P(HostileInput, Targets) {
  for (const char* target : {"/v1/events/%", "/v1/events/%z1", "/v1/events?text=%1", "/v1/events?text=%GG",
                             "*", "v1/events", "/v1/ev ents", "/v1/events?text=a|b^c", "/\x80"}) {
    SocketClient client(server_->port());
    client.send("GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const HttpAnswer answer = client.answer().value();
    EXPECT_THAT(code_of(answer, target), ::testing::AnyOf("invalid-target", "invalid-http")) << target;
  }
  expect_refused("GET", "/" + std::string(9000, 'x'), {}, "target-too-long");
}

TEST_P(HostileInput, Methods) {
  for (const char* method : {"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "get"}) {
    for (const char* target : {"/v1/events", "/v1/events/batch", "/v1/events/1", "/livez"}) {
      const HttpAnswer answer = ask(method, target);
      EXPECT_EQ(code_of(answer, method), "method-not-allowed") << method << " " << target;
      EXPECT_THAT(answer.header("Allow"),
                  ::testing::AnyOf("GET, HEAD", "POST", "POST, GET, HEAD", "GET, HEAD, POST"));
    }
  }
}

TEST_P(HostileInput, JsonThatIsNone) {
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "[";
  const std::string deep_objects = [] {
    std::string text;
    for (int i = 0; i < 10'000; ++i) text += R"({"a":)";
    return text;
  }();
  for (const std::string& body : {std::string(),
                                  std::string(" "),
                                  std::string("\0", 1),
                                  std::string("{"),
                                  std::string("nul"),
                                  std::string("{'a':1}"),
                                  std::string("{\"a\":01}"),
                                  std::string("{\"a\":1,}"),
                                  std::string("[1,]"),
                                  std::string("{\"a\":\"\xFF\"}"),
                                  std::string("{\"a\":\"\xED\xA0\x80\"}"),
                                  std::string("\xEF\xBB\xBF{}"),
                                  std::string("{\"a\":\"line\nbreak\"}"),
                                  std::string("{\"a\":NaN}"),
                                  std::string("{\"a\":-}"),
                                  std::string("{} {}"),
                                  std::string("[{}] x"),
                                  deep,
                                  deep_objects,
                                  std::string("\"") + std::string(1000, '\\')}) {
    expect_refused("POST", "/v1/events", body, "invalid-json");
    expect_refused("POST", "/v1/events/batch", body, "invalid-json");
  }
}

TEST_P(HostileInput, JsonThatIsNoEvent) {
  for (const char* body : {"null", "true", "1", "1e308", "\"x\"", "[]", "[[]]", "{}"}) {
    expect_refused("POST", "/v1/events", body, "invalid-event");
  }
  for (const char* body : {"null", "1", "\"x\"", "{}", R"({"events":{}})", R"({"events":null})"}) {
    expect_refused("POST", "/v1/events/batch", body, "invalid-batch");
  }
  for (const std::string& more :
       {std::string(R"(,"details":{"a":1})"), std::string(R"(,"details":1)"),
        std::string(R"(,"step":"a\u0000")"), std::string(R"(,"userId":true)"),
        std::string(R"(,"timestamp":"1e400")"), std::string(R"(,"timestamp":-1)"),
        std::string(R"(,"timestamp":"-2026-06-01T10:15:30Z")"),
        std::string(R"(,"timestamp":"0000-01-01T00:00:00Z")"),
        std::string(R"(,"timestamp":"9999-12-31T23:59:59.999999-23:59")"), std::string(R"(,"timestamp":"")"),
        std::string(R"(,"extra":1e400)"), std::string(R"(,"extra":{"list":[1,-1e999]})"),
        R"(,"idempotencyKey":")" + std::string(129, 'k') + "\""}) {
    expect_refused("POST", "/v1/events", event(more), "invalid-event");
    const HttpAnswer batch = ask("POST", "/v1/events/batch", "[" + event(more) + "," + event() + "]");
    EXPECT_EQ(batch.status, 200);
    EXPECT_THAT(batch.body, HasSubstr(R"("created":1,"duplicates":0,"rejected":1)")) << more;
  }
}

TEST_P(HostileInput, TextThatNoDatabaseTakesRefusesItsEventAlone) {
  for (const char* more :
       {R"(,"x":"a\u0000b")", R"(,"x":{"deep":[1,"\u0000"]})", R"(,"x\u0000":1)", R"(,"x":{"\u0000":1})",
        R"(,"step":"\ud83c")", R"(,"step":"\udfaf\ud83c")", R"(,"details":"\ud83c\ud83c\udfaf")",
        R"(,"details":"\ud83cx\\")", R"(,"x":"\udfaf")", R"(,"\uD83C":1)", R"(,"x":["\ud83c\n"])"}) {
    expect_refused("POST", "/v1/events", event(more), "invalid-event");
    const HttpAnswer batch = ask("POST", "/v1/events/batch", "[" + event() + "," + event(more) + "]");
    EXPECT_EQ(batch.status, 200) << more;
    EXPECT_THAT(batch.body, HasSubstr(R"("created":1,"duplicates":0,"rejected":1)")) << more;
  }
  const HttpAnswer escaped = ask("POST", "/v1/events", event(R"(,"step":"\\ud83c \\u0000")"));
  EXPECT_EQ(escaped.status, 201) << "a backslash and five characters: " << escaped.body;
  expect_refused("POST", "/v1/events/batch", "[" + event(R"(,"step":"\ud83c")") + "", "invalid-json");
}

TEST_P(HostileInput, AnEmptyFilterIsNoFilter) {
  EXPECT_EQ(ask("POST", "/v1/events", event()).status, 201);
  for (const char* name :
       {"correlationId", "applicationId", "text", "from", "to", "cursor", "limit", "order"}) {
    const HttpAnswer answer = ask("GET", std::string("/v1/events?") + name + "=");
    EXPECT_EQ(code_of(answer, name), "invalid-parameter") << name;
  }
  EXPECT_THAT(ask("GET", "/v1/events?correlationId=").body, HasSubstr("leave it out"));
}

TEST_P(HostileInput, ATargetMayNameItsServer) {
  const auto answer = [&](const std::string& target, const std::string& host) {
    SocketClient client(server_->port());
    client.send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return client.answer().value_or(HttpAnswer{});
  };
  EXPECT_EQ(answer("http://localhost/v1/events?limit=1", "localhost").status, 200);
  EXPECT_EQ(answer("HTTP://localhost:3000/livez", "other").status, 200);
  EXPECT_EQ(answer("http://localhost", "localhost").status, 404) << "which is /";
  for (const char* wrong : {"http:///livez", "http://user@localhost/livez", "ftp://localhost/livez",
                            "https://localhost/livez", "http:/livez", "localhost:80"}) {
    EXPECT_EQ(code_of(answer(wrong, "localhost"), wrong), "invalid-target") << wrong;
  }
}

TEST_P(HostileInput, OddEventsThatAreTakenComeBack) {
  const auto back = [&](const std::string& more) {
    const HttpAnswer created = ask("POST", "/v1/events", event(more));
    EXPECT_EQ(created.status, 201) << more << created.body;
    return object(ask("GET", created.header("Location")));
  };
  EXPECT_EQ(back(R"(,"step":"first","step":"last")").at("step"), "last") << "of two the last one counts";
  EXPECT_EQ(back(R"(,"x":1,"x":2)").at("x"), 2);
  EXPECT_EQ(back(R"(,"":"nameless")").at(""), "nameless");
  EXPECT_EQ(back(R"(,"x":9223372036854775807)").at("x"), 9223372036854775807);
  EXPECT_EQ(back(R"(,"x":-9223372036854775808)").at("x").as_int64(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(back(R"(,"x":18446744073709551615)").at("x").as_uint64(), 18446744073709551615U);
  EXPECT_EQ(back(R"(,"x":1e308)").at("x"), 1e308);
  EXPECT_EQ(back(R"(,"details":"\ud83c\udfaf\ufffe\uffff")").at("details"), "🎯\xEF\xBF\xBE\xEF\xBF\xBF");
  EXPECT_EQ(back(R"(,"timestamp":"1000-01-01T00:00:00Z")").at("timestamp"), "1000-01-01T00:00:00Z");
  EXPECT_EQ(back(R"(,"timestamp":"1969-12-31T23:59:59.999999Z")").at("timestamp"),
            "1969-12-31T23:59:59.999999Z");
  EXPECT_NE(back(R"(,"id":null,"receivedAt":null)").at("receivedAt"), nullptr) << "these are ours";
}

TEST_P(HostileInput, Framing) {
  const std::string body = event();
  const std::string length = std::to_string(body.size());
  for (const std::string& bytes :
       {with_headers("Content-Length: -1\r\n"),
        with_headers("Content-Length: x\r\n"),
        with_headers("Content-Length: 99999999999999999999\r\n"),
        with_headers("Content-Length: +5\r\n"),
        with_headers("Content-Length: 5\r\nContent-Length: 6\r\n"),
        with_headers("Content-Length: 5, 6\r\n"),
        with_headers("Content-Length: " + length + "\r\nTransfer-Encoding: chunked\r\n", body),
        with_headers("Transfer-Encoding: chunked\r\nContent-Length: " + length + "\r\n", body),
        with_headers("Transfer-Encoding: gzip\r\n", body),
        with_headers("Transfer-Encoding: identity\r\n", body),
        with_headers("Transfer-Encoding: chunked, gzip\r\n", body),
        with_headers("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
        with_headers("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
        with_headers("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"),
        chunked("-1\r\nx\r\n0\r\n\r\n"),
        chunked("xyz\r\n"),
        chunked("ffffffffffffffffffff\r\n"),
        chunked("5\r\nabcdefgh\r\n0\r\n\r\n"),
        chunked("\r\n\r\n"),
        chunked("0x5\r\nabcde\r\n0\r\n\r\n"),
        std::string("GET  /livez HTTP/1.1\r\nHost: x\r\n\r\n"),
        std::string("GET /livez\r\n\r\n"),
        std::string("GET /livez HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n"),
        std::string("GET /livez HTTP/1.1\r\nHost: x\r\n: nameless\r\n\r\n"),
        std::string("GET /livez HTTP/1.1\r\nHost: x\r\nA\x01: b\r\n\r\n"),
        std::string("GET /livez HTTP/1.1\r\nHost: x\r\nA: b\x01\r\n\r\n"),
        std::string("GET /livez HTTP/1.1\r\nHost: x\r\nA: ") + '\0' + "b\r\n\r\n",
        std::string("GET /livez HTTX/1.1\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + "\r\n\r\n",
        std::string("\r\n\r\nnonsense\r\n\r\n")}) {
    expect_refused(bytes, "invalid-http");
  }
  expect_refused(chunked("fffffffffffffff\r\n"), "body-too-large");
  expect_refused(with_headers("Content-Length: 9223372036854775807\r\n"), "body-too-large");
  expect_refused("GET /livez HTTP/2.0\r\nHost: x\r\n\r\n", "invalid-http");
  expect_refused("GET /livez HTTP/1.1\r\n\r\n", "host-missing");
  expect_refused("GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "host-missing");
  expect_refused("GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", "no-body-expected");
  expect_refused("GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
                 "no-body-expected");
  std::string flood = "GET /livez HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 5000; ++i) flood += "X-" + std::to_string(i) + ": y\r\n";
  expect_refused(flood + "\r\n", "header-too-large");
  expect_refused("GET /livez HTTP/1.1\r\nHost: x\r\nA: " + std::string(20'000, 'b') + "\r\n\r\n",
                 "header-too-large");
  EXPECT_EQ(rows(), 0);
}

TEST_P(HostileInput, NothingIsSmuggledBehindARefusal) {
  // What stands behind a refused request is never taken for the next one.
  SocketClient client(server_->port());
  client.send(with_headers("Transfer-Encoding: identity\r\n",
                           "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           "Content-Length: " +
                               std::to_string(event().size()) + "\r\n\r\n" + event()));
  EXPECT_EQ(client.answer().value().status, 400);
  EXPECT_FALSE(client.answer().has_value());
  EXPECT_EQ(rows(), 0);
}

TEST_P(HostileInput, PipelinedNonsenseAndHttp10) {
  SocketClient client(server_->port());
  client.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\n\r\nGET /livez");
  EXPECT_EQ(client.answer().value().status, 200);
  EXPECT_EQ(client.answer().value().status, 404);
  EXPECT_FALSE(client.answer().has_value()) << "after a refusal nothing more is read";
  SocketClient old(server_->port());
  old.send("GET /v1/events?limit=0 HTTP/1.0\r\n\r\n");
  EXPECT_EQ(code_of(old.answer().value(), "HTTP/1.0"), "invalid-parameter");
  EXPECT_TRUE(old.at_end());
}

TEST_P(HostileInput, KeysInTheHeader) {
  const auto status = [&](const std::string& key) {
    return ask("POST", "/v1/events", event(),
               "Content-Type: application/json\r\nIdempotency-Key: " + key + "\r\n");
  };
  EXPECT_EQ(code_of(status(std::string(129, 'k')), "long"), "invalid-event");
  EXPECT_EQ(code_of(status("\xFF\xFE"), "no UTF-8"), "invalid-event");
  EXPECT_EQ(status("schlüssel").status, 201);
}

TEST_P(HostileInput, PackedNonsense) {
  const auto post = [&](const std::string& body) {
    return ask("POST", "/v1/events/batch", body,
               "Content-Type: application/json\r\nContent-Encoding: gzip\r\n");
  };
  EXPECT_EQ(code_of(post(test::gzipped(std::string(100U << 20U, '['))), "bomb"), "body-too-large");
  EXPECT_EQ(code_of(post(test::gzipped("{")), "no JSON"), "invalid-json");
  EXPECT_EQ(code_of(post("{}"), "no gzip"), "invalid-gzip");
  EXPECT_EQ(post(test::gzipped("[" + event() + "]")).status, 200);
}

}  // namespace
}  // namespace postrider::api
