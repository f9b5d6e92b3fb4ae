// SPDX-License-Identifier: Apache-2.0
// Secrets stand wherever a configuration can have one. Then the program is driven through success and
// failure, and all that it says, to the terminal, the log, over HTTP, is searched for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include "app/api/access.hpp"
#include "app/cli/cli_fixture.hpp"
#include "app/http/socket_client_fixture.hpp"
#include "app/sinks/sink_kinds.hpp"
#include "daemon/canaries.hpp"
#include "daemon/notify_socket.hpp"
#include "support/backend.hpp"
#include "support/free_port.hpp"
#include "support/tls_identity.hpp"

namespace postrider::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using cli::CommandLine;
using ::testing::HasSubstr;
using ::testing::Not;

class Canary : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_.file(name)) << text;
  }
  [[nodiscard]] std::string config() const { return dir_.file("p.toml"); }
  /// A reference to a file with this secret.
  [[nodiscard]] std::string in_file(const std::string& secret) const {
    write(secret.substr(0, 20), secret + "\n");
    return "${file:" + dir_.file(secret.substr(0, 20)) + "}";
  }

  /// `postrider serve`, its log kept. `await_ready`: else until it has said its first line.
  void serve(bool await_ready = true, ChildProcess::Environment environment = {}) {
    environment.emplace_back("NOTIFY_SOCKET", notify_.path());
    std::vector<std::string> argv{"/bin/sh",      "-c",    "exec \"$0\" \"$@\" 2>>" + dir_.file("log"),
                                  program_path(), "serve", "-c",
                                  config()};
    child_.emplace(argv, environment);
    const std::string line = child_->read_line().value_or("");
    canaries_.look_for_in("the first line", line);
    ASSERT_THAT(line, HasSubstr("postrider: on http")) << content_of(dir_.file("log"));
    if (await_ready) {
      ASSERT_TRUE(notify_.await("READY=1")) << content_of(dir_.file("log"));
    }
  }
  /// Ends it and looks through what it has said.
  void end() {
    child_->signal(SIGTERM);
    while (const auto line = child_->read_line()) canaries_.look_for_in("stdout", *line);
    EXPECT_TRUE(child_->wait().has_value());
    for (const std::string& message : notify_.all()) canaries_.look_for_in("a message to systemd", message);
    canaries_.look_for_in("the log", content_of(dir_.file("log")));
  }
  std::optional<HttpAnswer> ask(std::string_view method, const std::string& path, const std::string& token,
                                const std::string& body = {}) {
    SocketClient client(port_);
    std::optional<HttpAnswer> answer =
        client.ask(method, path, body, token.empty() ? "" : "Authorization: Bearer " + token + "\r\n");
    if (answer) canaries_.look_for_in(std::string(method) + " " + path, answer->head + "\n" + answer->body);
    return answer;
  }
  /// A command to its end.
  CommandLine::Said run(const std::vector<std::string>& arguments) {
    const CommandLine::Said said = line_.run(arguments);
    std::string all;
    for (const std::string& one : arguments) all += " " + one;
    // What stands on the command line itself is known to whoever typed it, and looked for in what is said.
    canaries_.look_for_in("a command's output", said.out);
    canaries_.look_for_in("a command's errors", said.err);
    EXPECT_FALSE(said.out.empty() && said.err.empty()) << "it says nothing:" << all;
    return said;
  }

  TempDir dir_;
  Canaries canaries_;
  const std::uint16_t port_ = free_port();
  NotifySocket notify_;
  std::optional<ChildProcess> child_;
  CommandLine line_;
};

/// Sinks with secrets, once with nobody at the other end, once with somebody who speaks another protocol.
class CanarySinks : public Canary {
 protected:
#if defined(__SANITIZE_THREAD__)
  /// librdkafka makes its threads by C11's thrd_create, which g++ 12's ThreadSanitizer does not know: the
  /// first callback on one of them ends the process.
  void SetUp() override {
    GTEST_SKIP() << "ThreadSanitizer does not know librdkafka's threads";
  }
#endif
  [[nodiscard]] std::string table_of(const std::string& kind, const std::string& name,
                                     const std::string& host) {
    const auto quoted = [](const std::string& option, const std::string& value) {
      return option + " = \"" + value + "\"\n";
    };
    std::string text = "[sinks." + name + "]\n" + quoted("type", kind) + "timeout-ms = 400\n";
    if (kind != "file" && kind != "kafka") text += "connect-timeout-ms = 300\n";
    if (kind == "file") return text + quoted("path", "/no/such/folder/events.jsonl");
    if (kind == "kafka") {
      return text + quoted("brokers", host) + quoted("topic", "t") +
             quoted("\"kafka.security.protocol\"", "SASL_PLAINTEXT") +
             quoted("\"kafka.sasl.mechanisms\"", "PLAIN") + quoted("\"kafka.sasl.username\"", "me") +
             quoted("\"kafka.debug\"", "all") +
             quoted("\"kafka.sasl.password\"", in_file(canaries_.make(name + "Sasl")));
    }
    if (kind == "nats") {
      return text + quoted("url", "nats://me:" + canaries_.make(name + "Url") + "@" + host) +
             quoted("token", canaries_.make(name + "Token")) +
             quoted("password", in_file(canaries_.make(name)));
    }
    if (kind == "rabbitmq")
      return text + quoted("url", "amqp://" + host) + quoted("user", "me") +
             quoted("password", canaries_.make(name));
    if (kind == "redis")
      return text + quoted("url", "redis://me:" + canaries_.make(name + "Url") + "@" +
                                      host);  // and from the environment
    if (kind == "webhook") {
      const std::string key = "d2hzZWNyZXRjYW5hcnlkMmh6WldOeVpYUmpZVzVoY25r";
      canaries_.add(name + " key", key);
      return text + quoted("url", "http://" + host + "/hooks/" + canaries_.make(name + "Url")) +
             "allow-private = true\nsecrets = [\"whsec_" + key + "\"]\n" +
             quoted("\"header.Authorization\"", "Bearer " + in_file(canaries_.make(name + "Header")));
    }
    ADD_FAILURE() << "sinks of the type " << kind << " may have secrets: add them to this test";
    return {};
  }
  /// Everything at once: all sinks, relay and outbox to each of them, tokens.
  void write_everything() {
    std::string tables;
    std::string publishers;
    for (const std::string_view kind : sinks::kinds()) {
      for (const std::string& end : {std::string("away"), std::string("odd")}) {
        const std::string name = std::string(kind) + end;
        tables +=
            table_of(std::string(kind), name, "127.0.0.1:" + (end == "away" ? "1" : std::to_string(port_)));
        tables += "[[outbox.routes]]\ntype = \"" + name + "\"\nsink = \"" + name + "\"\n";
        publishers += (publishers.empty() ? "\"" : ", \"") + name + "\"";
        names_.push_back(name);
      }
    }
    for (const auto& [role, token] :
         {std::pair{api::Role::viewer, &viewer_}, std::pair{api::Role::admin, &admin_}}) {
      *token = api::make_token();
      canaries_.add("token", *token);
      api::add_token(dir_.file("tokens"),
                     {.name = std::string(to_string(role)), .role = role, .sha256 = api::hash_of(*token)});
      canaries_.add("token's hash", api::hash_of(*token));
    }
    write(
        "p.toml",
        "[storage]\nurl = \"sqlite:" + dir_.file("p.db") + "\"\n[server]\nlisten = \"127.0.0.1:" +
            std::to_string(port_) + "\"\ntoken-file = \"" + dir_.file("tokens") +
            "\"\n[node]\nname = \"${env:CANARY_NODE}\"\nlog-level = \"debug\"\n[eventlog]\nenabled = true\n" +
            "[outbox]\npoller-interval-ms = 20\nretry-max-attempts = 2\nretry-base-delay-ms = 1\n" +
            "[relay]\npolling-interval-ms = 20\n[relay.topics.all]\npublishers = [" + publishers + "]\n" +
            tables);
  }
  /// Until every sink has failed.
  void fail_everywhere() {
    for (const std::string& name : names_) {
      const auto answer = ask("POST", "/api/events", admin_, R"({"type":")" + name + R"(","payload":{}})");
      ASSERT_EQ(answer.value().status, 201) << answer->body;
    }
    ASSERT_EQ(
        ask("POST", "/append", admin_, R"({"events":[{"type":"T","data":"{}","tags":[]}]})").value().status,
        200);
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    const auto all_failed = [&] {
      const json::value body = json::parse(ask("GET", "/api/topics", viewer_).value().body);
      const json::array& pairs = body.at("pairs").as_array();
      return pairs.size() == names_.size() &&
             std::all_of(pairs.begin(), pairs.end(),
                         [](const json::value& pair) { return !pair.at("lastError").is_null(); });
    };
    while (!all_failed()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << ask("GET", "/api/topics", viewer_)->body;
      std::this_thread::yield();
    }
  }
  /// Every path of the API, by everybody; and some that there are not.
  void ask_everything() {
    const std::string wrong = "prt_" + canaries_.make("wrongToken");
    std::istringstream text(content_of(source_file("docs/openapi.yaml")));
    std::string path;
    std::size_t asked = 0;
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("  /")) path = line.substr(2, line.size() - 3);
      const bool get = line.starts_with("    get:");
      if (path.empty() || path == "/api/live" || (!get && !line.starts_with("    post:"))) continue;
      for (const std::string_view place : {"{publisher}", "{topic}", "{id}", "{name}"}) {
        const std::size_t at = path.find(place);
        if (at != std::string::npos)
          path.replace(at, place.size(), place == "{topic}" ? "all" : names_.front());
      }
      for (const std::string& token : {std::string(), wrong, viewer_, admin_}) {
        EXPECT_TRUE(ask(get ? "GET" : "POST", path, token, get ? "" : "{\"nothing\": [").has_value()) << path;
        if (!get) {
          EXPECT_TRUE(ask("POST", path, token, "{}").has_value()) << path;
          EXPECT_TRUE(ask("POST", path, token).has_value()) << path;
        }
        ++asked;
      }
    }
    EXPECT_GT(asked, 150U) << "docs/openapi.yaml is read wrongly";
    for (const char* other :
         {"/", "/ui", "/ui/", "/no/such", "/readyz?verbose", "/api/outbox/events?cursor=x",
          "/api/outbox/events?status=nonsense", "/v1/events?limit=x"}) {
      for (const std::string& token : {std::string(), wrong, admin_}) (void)ask("GET", other, token);
    }
    for (const char* raw :
         {"NONSENSE\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n"}) {
      SocketClient client(port_);
      ASSERT_TRUE(client.send(raw));
      if (const auto answer = client.answer()) canaries_.look_for_in(raw, answer->head + answer->body);
    }
    SocketClient live(port_);
    ASSERT_TRUE(live.send("GET /api/live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + viewer_ +
                          "\r\n\r\n"));
    canaries_.look_for_in("/api/live", live.until("\n\n").value_or("") + live.until("\n\n").value_or(""));
  }

  std::vector<std::string> names_;
  std::string viewer_;
  std::string admin_;
};

TEST_F(CanarySinks, ComeOutNowhere) {
  write_everything();
  // A node's name is no secret, and seen in many places; but it came from a reference.
  const ChildProcess::Environment environment{
      {"CANARY_NODE", "node7"}, {"POSTRIDER_SINKS_REDISAWAY_PASSWORD", canaries_.make("redisEnv")}};
  line_.environment = environment;
  EXPECT_EQ(run({"config", "check", "-c", config()}).code, 0);
  serve(true, environment);
  fail_everywhere();
  ask_everything();
  EXPECT_THAT(ask("GET", "/api/audit", admin_).value().body, HasSubstr("admin")) << "something was done";

  for (const std::string& format : {std::string("toml"), std::string("json")}) {
    const CommandLine::Said said = run({"config", "print", "-c", config(), "-o", format});
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_THAT(said.out, HasSubstr("${env:CANARY_NODE}"));
    EXPECT_THAT(said.out, Not(HasSubstr("node7")));
  }
  for (const char* format : {"table", "json"}) {
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"doctor"},
                                               {"status"},
                                               {"topics", "list"},
                                               {"leaders"},
                                               {"outbox", "counts"},
                                               {"outbox", "list"},
                                               {"dead", "list"},
                                               {"queue", "counts"},
                                               {"verify"},
                                               {"no-such-command"}}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"-c", config(), "-o", format});
      (void)run(arguments);
    }
  }
  (void)run({"check", "-c", config()});

  // A configuration that is not taken any more: the log says why.
  const std::string before = content_of(config());
  write("p.toml", before + "nonsense = 1\n");
  EXPECT_NE(run({"config", "check", "-c", config()}).code, 0);
  EXPECT_NE(run({"config", "print", "-c", config()}).code, 0);
  child_->signal(SIGHUP);
  ASSERT_TRUE(notify_.await("RELOADING=1"));
  ASSERT_TRUE(notify_.await("READY=1"));
  write("p.toml", before);
  write("tokens", "me viewer " + canaries_.make("tokenLine") + " never\n");
  EXPECT_NE(run({"config", "check", "-c", config()}).code, 0);
  (void)run({"doctor", "-c", config()});
  child_->signal(SIGHUP);
  ASSERT_TRUE(notify_.await("RELOADING=1"));
  ASSERT_TRUE(notify_.await("READY=1"));
  end();
  EXPECT_THAT(content_of(dir_.file("log")), HasSubstr("the configuration is not taken over"));
}

/// What the program says of sinks that it refuses at once.
TEST_F(CanarySinks, ComeOutOfNoRefusal) {
  const std::string head = "[storage]\nurl = \"sqlite:" + dir_.file("p.db") + "\"\n[sinks.s]\n";
  const std::vector<std::string_view> kinds = sinks::kinds();
  const std::vector<std::pair<std::string, std::string>> all{
      {"nats", "url = \"nats://me:" + canaries_.make("nats") + "@host:port\""},
      {"nats", "url = \"nats://me:" + canaries_.make("nats") + "%zz@host\""},
      {"nats", "url = \"x\"\npassword = \"" + canaries_.make("nats") + std::string(5000, 'x') + "\""},
      {"rabbitmq", "url = \"amqp://me:" + canaries_.make("rabbit") + "@host\""},
      {"rabbitmq", "url = \"amqp://me:" + canaries_.make("rabbit") + "@host:port\""},
      {"rabbitmq", "password = \"" + canaries_.make("rabbit") + std::string(5000, 'x') + "\""},
      {"redis", "url = \"redis://me:" + canaries_.make("redis") + "@host:port\""},
      {"redis", "url = \"rediss://me:" + canaries_.make("redis") + "@host\""},
      {"redis", "password = [\"" + canaries_.make("redis") + "\"]"},
      {"webhook", "url = \"https://me:" + canaries_.make("hook") + "@host/\""},
      {"webhook", "url = \"ftp://host/" + canaries_.make("hook") + "\""},
      {"webhook", "url = \"https://host/\"\nsecrets = [\"" + canaries_.make("hook") + "\"]"},
      {"webhook", "url = \"https://host/\"\nsecrets = [{a = \"" + canaries_.make("hook") + "\"}]"},
      {"webhook", "url = \"https://host/\"\n\"header.X-Key\" = \"" + canaries_.make("hook") + "\\n\""},
      {"kafka",
       "brokers = \"b\"\ntopic = \"t\"\n\"kafka.no.password\" = \"" + canaries_.make("kafka") + "\""},
      {"kafka",
       "brokers = \"b\"\ntopic = \"t\"\n\"kafka.ssl.key.pem\" = \"" + canaries_.make("kafka") + "\""},
      {"kafka", "brokers = \"b\"\ntopic = \"t\"\n\"kafka.sasl.mechanisms\" = \"${env:CANARY_SASL}\""},
  };
  line_.environment = {{"CANARY_SASL", canaries_.make("sasl")}};
  for (const auto& [kind, options] : all) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
    write("p.toml", head + "type = \"" + kind + "\"\n" + options + "\n");
    (void)run({"config", "check", "-c", config()});
    (void)run({"config", "print", "-c", config()});
    (void)run({"config", "print", "-c", config(), "-o", "json"});
    (void)run({"status", "-c", config()});
  }
}

/// Of the database: the password of its URL.
TEST_F(Canary, PasswordsOfDatabasesComeOutNowhere) {
  std::vector<std::string> schemes{"oracle"};
#if defined(POSTRIDER_WITH_POSTGRES)
  schemes.insert(schemes.end(), {"postgresql", "postgres"});
#endif
#if defined(POSTRIDER_WITH_MARIADB)
  schemes.insert(schemes.end(), {"mariadb", "mysql"});
#endif
  for (const std::string& scheme : schemes) {
    const std::string password = canaries_.make(scheme);
    for (const std::string& url :
         {scheme + "://me:" + password + "@127.0.0.1:1/none",
          scheme + "://me:" + password + "@127.0.0.1:port/none",
          scheme + "://me:" + password + "%zz@127.0.0.1/none",
          scheme + "://me:" + password + "/@127.0.0.1:1/none",
          scheme + "://127.0.0.1:1/none?user=me&password=" + password, scheme + ":me:" + password + "@x"}) {
      SCOPED_TRACE(url);
      write("p.toml", "[storage]\nurl = \"" + url +
                          "\"\nwait = false\nacquire-timeout-ms = 200\n[server]\nlisten = "
                          "\"127.0.0.1:0\"\n");
      (void)run({"config", "check", "-c", config()});
      (void)run({"config", "print", "-c", config()});
      EXPECT_NE(run({"serve", "-c", config()}).code, 0);
      EXPECT_NE(run({"doctor", "-c", config()}).code, 0);
      EXPECT_NE(run({"status", "-c", config(), "-o", "json"}).code, 0);
      if (url.find(":1/none") != std::string::npos && url.find("/@") == std::string::npos) continue;
      // Nobody is waited for where nobody could be asked.
      EXPECT_NE(run({"status", "--storage", url}).code, 0);
      EXPECT_NE(run({"migrate", "--storage", url}).code, 0);
      EXPECT_NE(run({"check", "--storage", url}).code, 0);
    }
  }
}

#if defined(POSTRIDER_WITH_POSTGRES)
TEST_F(Canary, WaitingForADatabaseShowsNoPassword) {
  write("p.toml", "[storage]\nurl = \"postgresql://me:" + in_file(canaries_.make("db")) +
                      "@127.0.0.1:1/none\"\nacquire-timeout-ms = 200\n[server]\nlisten = \"127.0.0.1:" +
                      std::to_string(port_) + "\"\n[node]\nlog-level = \"debug\"\n");
  serve(false);
  for (const char* path : {"/readyz", "/readyz?verbose", "/metrics", "/api/overview", "/api/topics"}) {
    EXPECT_TRUE(ask("GET", path, {}).has_value()) << path;
  }
  EXPECT_THAT(ask("GET", "/readyz?verbose", {}).value().body, HasSubstr("postgresql://me@127.0.0.1:1/none"));
  end();
}
#endif

/// On a server that lets one in with any password, or says no to it.
class CanaryOn : public BackendTest {};
POSTRIDER_FOR_EACH_BACKEND(CanaryOn);

TEST_P(CanaryOn, APasswordComesOutOfNoLogin) {
  const TestDatabase database(backend());
  Canaries canaries;
  std::string url = database.url();
  if (backend() != "sqlite") {  // which has no passwords
    const std::size_t user = url.find("://") + 3;
    const std::size_t end = url.find_first_of(":@", user);
    url = url.substr(0, end) + ":" + canaries.make("login") + url.substr(url.find('@'));
  }
  const TempDir dir;
  std::ofstream(dir.file("p.toml")) << "[storage]\nurl = \"" << url << "\"\nwait = false\nschema = \""
                                    << database.options().schema.str()
                                    << "\"\n[node]\nlog-level = \"debug\"\n";
  CommandLine line;
  for (const std::vector<std::string>& command : {std::vector<std::string>{"doctor"},
                                                  {"status"},
                                                  {"verify"},
                                                  {"migrate"},
                                                  {"outbox", "counts"},
                                                  {"config", "print"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"-c", dir.file("p.toml")});
    const CommandLine::Said said = line.run(arguments);
    EXPECT_FALSE(said.out.empty() && said.err.empty()) << command.front();
    canaries.look_for_in(command.front(), said.out + said.err);
  }
}

TEST_F(Canary, TheKeyOfACertificateComesOutNowhere) {
  const TlsIdentity identity = TlsIdentity::server(TlsIdentity::authority("test"), "DNS:localhost");
  identity.save_certificate(dir_.file("cert.pem"));
  identity.save_key(dir_.file("key.pem"));
  canaries_.add_lines("key", dir_.file("key.pem"));
  const auto configure = [&](const std::string& key) {
    write("p.toml", "[storage]\nurl = \"sqlite:" + dir_.file("p.db") + "\"\n[server]\nlisten = \"127.0.0.1:" +
                        std::to_string(port_) + "\"\ntls-certificate = \"" + dir_.file("cert.pem") +
                        "\"\ntls-key = \"" + dir_.file(key) + "\"\n[node]\nlog-level = \"debug\"\n");
  };
  configure("key.pem");
  serve();
  EXPECT_EQ(SocketClient(port_).ask("GET", "/", {}).value().status, 400) << "no HTTP without TLS";
  (void)run({"doctor", "-c", config()});
  write("key.pem", "-----BEGIN PRIVATE KEY-----\n" + canaries_.make("brokenKey") + "\n");
  child_->signal(SIGHUP);
  ASSERT_TRUE(notify_.await("RELOADING=1"));
  ASSERT_TRUE(notify_.await("READY=1"));
  EXPECT_NE(run({"config", "check", "-c", config()}).code, 0);
  EXPECT_NE(run({"doctor", "-c", config()}).code, 0);
  end();
  EXPECT_THAT(content_of(dir_.file("log")), HasSubstr("key.pem for TLS"));
}

}  // namespace
}  // namespace postrider::test
