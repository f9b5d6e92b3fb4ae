// SPDX-License-Identifier: Apache-2.0
// postrider config check refuses what postrider serve refuses, in the same words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "app/cli/cli_fixture.hpp"
#include "app/sinks/sink_kinds.hpp"
#include "support/tls_identity.hpp"

namespace postrider::cli {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// A configuration that must be refused, and a part of what is said.
struct Bad {
  std::string text;
  std::string said;
};

class ConfigCheck : public ::testing::Test {
 protected:
  [[nodiscard]] CommandLine::Said run(const char* command, const std::string& text) const {
    std::ofstream(config_) << text;
    return std::string_view(command) == "check" ? line_.run({"config", "check", "-c", config_})
                                                : line_.run({command, "-c", config_});
  }
  /// Both refuse it, and say the same.
  void refuses(const Bad& bad) const {
    SCOPED_TRACE(bad.text);
    const CommandLine::Said checked = run("check", bad.text);
    EXPECT_EQ(checked.code, 1) << checked.out;
    EXPECT_THAT(checked.err, HasSubstr(bad.said));
    if (checked.code == 0) return;  // serve might run for ever
    const CommandLine::Said served = run("serve", bad.text);
    EXPECT_EQ(served.code, 1);
    EXPECT_EQ(served.err, checked.err);
    EXPECT_THAT(checked.out + served.out, IsEmpty());
  }
  /// A whole configuration with one more table.
  [[nodiscard]] std::string with(const std::string& more) const {
    return "[storage]\nurl = \"sqlite:" + dir_.file("x.db") + "\"\n" + more;
  }
  [[nodiscard]] std::string with_sink(const std::string& type, const std::string& options) const {
    return with("[sinks.s]\ntype = \"" + type + "\"\n" + options + "\n");
  }
  [[nodiscard]] std::string with_server(const std::string& options) const {
    return with("[server]\n" + options + "\n");
  }
  [[nodiscard]] std::string named(const std::string& option, const char* file) const {
    return option + " = \"" + dir_.file(file) + "\"\n";
  }
  void write(const char* name, const std::string& content) const {
    std::ofstream(dir_.file(name)) << content;
  }

  test::TempDir dir_;
  const std::string config_ = dir_.file("p.toml");
  CommandLine line_;
};

TEST_F(ConfigCheck, RefusesDatabasesThatServeRefuses) {
  const std::vector<Bad> all {
    {"[storage]\n", "storage.url is refused: it is missing"},
        {"[storage]\nurl = \"shop.db\"\n", "its URL has no scheme"},
        {"[storage]\nurl = \"shop.db\"\n", "p.toml, line 2: storage.url is refused: "},
        {"[storage]\nurl = \"oracle://db/x\"\n", "no such scheme"},
        {"[storage]\nurl = \"sqlite::memory:\"\n", "events would not be durable"},
        {"[storage]\nurl = \"sqlite:x.db?mode=ro\"\n", "a sqlite: URL has no parameters"},
        {"[storage]\nurl = \"sqlite:file:x.db\"\n", "file: URIs are not taken"},
        {"[storage]\nurl = \"sqlite:~/x.db\"\n", "~ is known to shells only"},
        {"[storage]\nurl = \"sqlite://host/x.db\"\n", "a file has no host"},
        {"[storage]\nurl = \"sqlite:/no/such/folder/x.db\"\n", "/no/such/folder"},
#if defined(POSTRIDER_WITH_POSTGRES)
        {"[storage]\nurl = \"postgresql://db:port/x\"\n", "cannot read the PostgreSQL URL"},
        {"[storage]\nurl = \"postgres:shop\"\n",
         "cannot read the PostgreSQL URL: '//' is missing behind its scheme"},
#endif
        {"[storage]\nurl = \"sqlite:x.db\"\nschema = \"a b\"\n", "storage.schema is refused"},
  };
  for (const Bad& bad : all) refuses(bad);
}

TEST_F(ConfigCheck, SpeaksJson) {
  std::ofstream(config_) << "[storage]\nurl = \"sqlite:x.db\"\npol-size = 1\n[servr]\n";
  const CommandLine::Said bad = line_.run({"config", "check", "-c", config_, "-o", "json"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_EQ(bad.json().at("ok"), false);
  ASSERT_EQ(bad.json().at("errors").as_array().size(), 2U);
  EXPECT_THAT(bad.json().at("errors").at(1).as_string().c_str(),
              HasSubstr("line 4: there is no table 'servr'"));
  std::ofstream(config_) << with("");
  const CommandLine::Said good = line_.run({"config", "check", "-c", config_, "-o", "json"});
  EXPECT_EQ(good.code, 0);
  EXPECT_EQ(good.json().at("ok"), true);
}

TEST_F(ConfigCheck, RefusesAddressesThatServeRefuses) {
  for (const Bad& bad :
       std::vector<Bad>{{with_server("listen = \"0.0.0.0:8080\""), "others than this machine could reach it"},
                        {with_server("listen = \"here\""), "it is no address with a port"},
                        {with_server("listen = \"here\""), "p.toml, line 4: server.listen is refused: "},
                        {with_server("listen = \"127.0.0.1:99999\""), "ports go up to 65535"},
                        {with_server("listen = \"example.org:80\""), "names are not looked up"}}) {
    refuses(bad);
  }
}

TEST_F(ConfigCheck, RefusesCertificatesThatServeRefuses) {
  const test::TlsIdentity authority = test::TlsIdentity::authority("test");
  test::TlsIdentity::server(authority, "DNS:localhost").save_certificate(dir_.file("cert.pem"));
  test::TlsIdentity::server(authority, "DNS:localhost").save_key(dir_.file("other.pem"));
  write("nonsense.pem", "nonsense");
  const std::string cert = named("tls-certificate", "cert.pem");
  for (const Bad& bad : std::vector<Bad>{
           {with_server(cert), "a certificate and its key go together"},
           {with_server(named("tls-certificate", "none.pem") + named("tls-key", "other.pem")),
            "none.pem for TLS"},
           {with_server(named("tls-certificate", "nonsense.pem") + named("tls-key", "other.pem")),
            "nonsense.pem for TLS"},
           {with_server(cert + named("tls-key", "none.pem")), "none.pem for TLS"},
           {with_server(cert + named("tls-key", "nonsense.pem")), "nonsense.pem for TLS"},
           {with_server(cert + named("tls-key", "other.pem")), "other.pem for TLS"}}) {
    refuses(bad);
  }
}

TEST_F(ConfigCheck, RefusesTokenFilesThatServeRefuses) {
  const std::string hash(64, 'a');
  write("roleless", "me king " + hash + " never\n");
  write("hashless", "me viewer secret never\n");
  write("open", "me viewer " + hash + " never\n");
  ::chmod(dir_.file("open").c_str(), 0666);
  for (const Bad& bad : std::vector<Bad>{
           {with_server(named("token-file", "none")), "cannot read the tokens in"},
           {with_server(named("token-file", "none")), "p.toml, line 4: server.token-file is refused: "},
           {with_server(named("token-file", "roleless")), "line 1 is refused: there is no role 'king'"},
           {with_server(named("token-file", "hashless")), "the hash is not 64 hexadecimal digits"},
           {with_server(named("token-file", "open")), "others than its owner may write to it"}}) {
    refuses(bad);
  }
}

TEST_F(ConfigCheck, RefusesNamesThatServeRefuses) {
  const std::string file = "[sinks.s]\ntype = \"file\"\npath = \"x\"\n";
  for (const Bad& bad : std::vector<Bad>{
           {with("[[outbox.routes]]\nsink = \"s\"\n"), "there is no sink 's'"},
           {with("[[outbox.routes]]\nsink = \"LogPublisher\"\n"), "there is no sink 'LogPublisher'"},
           {with("[relay.topics.t]\npublishers = [\"s\"]\n"), "there is no sink 's'"},
           {with(file + "[relay.topics.t]\npublishers = [\"s\", \"s\"]\n"), "'s' stands there twice"},
           {with(file + "[relay.topics." + std::string(200, 't') + "]\npublishers = [\"s\"]\n"),
            "cannot use a topic"},
           {with(file + file), "line 6"},
           {with("[sinks.s]\ntype = \"fax\"\n"), "there is no sink of the type 'fax'"},
           {with("[node]\nname = \"" + std::string(49, 'n') + "\"\n"), "more than 48 characters"},
           {with("[relay]\nlease-ms = 1000\nheartbeat-ms = 500\n"), "at most a third of lease-ms"},
           {with("[outbox]\nwrkers = 1\n"), "did you mean workers?"}}) {
    refuses(bad);
  }
}

TEST_F(ConfigCheck, RefusesSinksThatServeRefuses) {
  struct BadSink {
    std::string type;
    std::string options;
    std::string said;
  };
  const std::vector<std::string_view> kinds = sinks::kinds();
  for (const BadSink& bad : std::vector<BadSink>{
           {"file", "path = \"\"", "path is refused: it is missing"},
           {"file", "path = \"x\"\nsource = \"a b\"", "sinks.s is refused: "},
           {"kafka", "brokers = \"b:9092\"\ntopic = \"{nothing}\"", "sinks.s is refused: "},
           {"kafka", "brokers = \"b:9092\"\ntopic = \"t\"\n\"kafka.no.such\" = \"x\"", "'no.such'"},
           {"kafka", "brokers = \"b:9092\"\ntopic = \"t\"\n\"kafka.acks\" = \"1\"",
            "the sink sets it by itself"},
           {"kafka", "brokers = \"b:9092\"\ntopic = \"t\"\ntimeout-ms = 10", "sinks.s is refused: "},
           {"nats", "url = \"http://x\"", "neither nats:// nor tls://"},
           {"nats", "tls = true\ntls-cert = \"c.pem\"", "sinks.s is refused: "},
           {"rabbitmq", "url = \"amqp://me:secret@x\"", "without a user and a password"},
           {"rabbitmq", "ca-file = \"/no/such.pem\"", "a file that can be read"},
           {"rabbitmq", "queue = \"q\"\nexchange = \"e\"", "empty when there is an exchange"},
           {"redis", "url = \"rediss://x\"", "TLS is not supported"},
           {"redis", "stream = \"{nothing}\"", "sinks.s is refused: "},
           {"webhook", "url = \"ftp://x\"", "sinks.s is refused: "},
           {"webhook", "url = \"http://10.0.0.7/x\"",
            "sinks.s is refused: cannot send webhooks to 10.0.0.7: it is not an address of the public "
            "internet. "
            "Hint: if it is meant to be reached, allow private addresses: allow-private = true"},
           {"webhook", "url = \"https://[fe80::1]/\"", "allow-private = true"},
           {"webhook", "url = \"https://x/\"\nsecrets = [\"whsec_short\"]", "sinks.s is refused: "},
           {"webhook", "url = \"https://x/\"\n\"header.Host\" = \"y\"",
            "one that the sink does not set itself"}}) {
    if (std::find(kinds.begin(), kinds.end(), bad.type) == kinds.end()) continue;
    refuses({with_sink(bad.type, bad.options), bad.said});
  }
}

TEST_F(ConfigCheck, TellsOfAllSinksAtOnceEachWithItsLine) {
  // All of them are found wrong by the sink itself, not by who reads the table.
  std::string text = with("[sinks.a]\ntype = \"file\"\nsource = \"a b\"\npath = \"x\"\n");
  std::vector<std::string> said{"p.toml, line 5: sinks.a is refused: cannot speak CloudEvents: the source"};
  const std::vector<std::string_view> kinds = sinks::kinds();
  const auto add = [&](std::string_view kind, const std::string& table, const std::string& refusal) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) return;
    const auto line = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    const bool of_url = refusal.starts_with("cannot read");
    text += table;
    said.push_back("p.toml, line " + std::to_string(line + (of_url ? 2 : 0)) + ": sinks." +
                   std::string(kind) + " is refused: " + refusal);
  };
  add("webhook", "[sinks.webhook]\ntype = \"webhook\"\nurl = \"http://10.0.0.7/x\"\n",
      "cannot send webhooks to 10.0.0.7");
  add("nats", "[sinks.nats]\ntype = \"nats\"\nurl = \"http://x\"\n", "cannot read the NATS URL");
  add("redis", "[sinks.redis]\ntype = \"redis\"\nurl = \"rediss://x\"\n", "cannot read the Redis URL");
  for (const std::string& one : said) refuses({text, one});
  std::ofstream(config_) << text;
  const boost::json::value errors =
      line_.run({"config", "check", "-c", config_, "-o", "json"}).json().at("errors");
  ASSERT_EQ(errors.as_array().size(), said.size());
  for (std::size_t i = 0; i < said.size(); ++i) {
    EXPECT_THAT(errors.at(i).as_string().c_str(), HasSubstr(said[i])) << "in the order of the file";
  }
}

TEST_F(ConfigCheck, TellsOfAllThatServeCannotUseAtOnce) {
  const std::string text = "[storage]\nurl = \"oracle://db/x\"\n[server]\nlisten = \"here\"\n" +
                           named("token-file", "none") + named("tls-certificate", "none.pem") +
                           named("tls-key", "none.pem") +
                           "[sinks.s]\ntype = \"file\"\nsource = \"a b\"\npath = \"x\"\n";
  const std::vector<std::string> said{
      "p.toml, line 2: storage.url is refused: ", "p.toml, line 4: server.listen is refused: ",
      "p.toml, line 5: server.token-file is refused: ", "none.pem for TLS: ",
      "p.toml, line 10: sinks.s is refused: cannot speak CloudEvents: the source"};
  for (const std::string& one : said) refuses({text, one});
  refuses({text, "the configuration is refused for 5 reasons:"});
  const boost::json::value errors =
      line_.run({"config", "check", "-c", config_, "-o", "json"}).json().at("errors");
  ASSERT_EQ(errors.as_array().size(), said.size());
}

TEST_F(ConfigCheck, WarnsOfAFileWhoseFolderIsNotThere) {
  const CommandLine::Said said = run("check", with_sink("file", "path = \"/no/such/x.jsonl\""));
  EXPECT_EQ(said.code, 0) << "it may be mounted later";
  EXPECT_EQ(said.err,
            "postrider warning: sink 's' cannot write to /no/such/x.jsonl: there is no folder /no/such; its "
            "events wait until there is. Hint: mkdir -p /no/such, or is the path right?\n");
}

TEST_F(ConfigCheck, SpeaksInTheNamesOfTheFile) {
  const std::vector<std::string_view> kinds = sinks::kinds();
  const auto refused = [&](std::string_view type, const std::string& options) -> std::string {
    if (std::find(kinds.begin(), kinds.end(), type) == kinds.end()) return {};
    const CommandLine::Said said = run("check", with_sink(std::string(type), options));
    EXPECT_EQ(said.code, 1) << options;
    EXPECT_THAT(said.err, Not(AnyOf(HasSubstr("Options"), HasSubstr("Limits::"), HasSubstr("tls_key"))))
        << options;
    return said.err;
  };
  const std::string topic = refused("kafka", "brokers = \"b:9092\"\ntopic = \"{nothing}\"");
  if (!topic.empty()) {
    EXPECT_THAT(topic, HasSubstr("line 6: sinks.s is refused: cannot use topic = "));
    EXPECT_THAT(refused("kafka", "brokers = \"b:9092\"\ntopic = \"t\"\n\"kafka.no.such\" = \"x\""),
                HasSubstr("line 7: sinks.s is refused: cannot use the Kafka property 'no.such' "
                          "(\"kafka.no.such\" of the sink):"));
    EXPECT_THAT(refused("kafka", "brokers = \"b:9092\"\ntopic = \"t\"\n\"kafka.acks\" = \"1\""),
                HasSubstr("line 7: "));
    EXPECT_THAT(refused("kafka", "brokers = \"b:9092\"\ntopic = \"t\"\ntimeout-ms = 10"),
                HasSubstr("line 7: "));
  }
  refused("nats", "tls = true\ntls-cert = \"c.pem\"");
  refused("rabbitmq", "ca-file = \"/no/such.pem\"");
  refused("rabbitmq", "queue = \"q\"\nexchange = \"e\"");
  refused("redis", "stream = \"{nothing}\"");
  refused("webhook", "url = \"ftp://x\"");
  refused("webhook", "url = \"http://10.0.0.7/x\"");
  refused("webhook", "url = \"https://x/\"\n\"header.Host\" = \"y\"");
}

TEST_F(ConfigCheck, NamesTheFileAlsoWhereThereIsNoLineToName) {
  refuses({"", "p.toml: storage.url is refused: it is missing"});
  const CommandLine::Said said = line_.run({"config", "check", "-c", "none.toml"});
  EXPECT_THAT(said.err, AllOf(HasSubstr("cannot read none.toml"), HasSubstr("Hint: it was looked for in /")));
}

TEST_F(ConfigCheck, TakesWhatServeTakesAndMakesNothing) {
  const test::TempDir scratch;
  line_.environment = {{"TMPDIR", scratch.path().string()}};
  const std::string text = with(
      "[server]\nlisten = \"127.0.0.1:0\"\n[sinks.s]\ntype = \"file\"\npath = \"" + dir_.file("out.jsonl") +
      "\"\n[[outbox.routes]]\nsink = \"s\"\n[relay.topics.t]\npublishers = [\"s\", \"LogPublisher\"]\n"
      "[eventlog]\nenabled = true\nretention = \"1d\"\n");
  const CommandLine::Said said = run("check", text);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, StartsWith("postrider: " + config_ + " is fine"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
  for (const char* file : {"x.db", "x.db-relay", "out.jsonl"})
    EXPECT_FALSE(std::filesystem::exists(dir_.file(file))) << file;
    // A database that is away is no fault of the configuration.
#if defined(POSTRIDER_WITH_POSTGRES)
  EXPECT_EQ(run("check", "[storage]\nurl = \"postgresql://x@127.0.0.1:1/none\"\n").code, 0);
#endif
}

TEST_F(ConfigCheck, WhatServeWouldTakeAndWarnOfIsSaid) {
  const CommandLine::Said said = run("check", with("[outbox]\nenabled = true\n"));
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, StartsWith("postrider: " + config_ + " is fine"));
  EXPECT_THAT(said.err, HasSubstr("warning: [outbox] is enabled and has no route: every event of the outbox "
                                  "becomes a dead letter. Hint: "));
  const auto listed = line_.run({"config", "check", "-c", config_, "-o", "json"}).json();
  EXPECT_EQ(listed.at("ok"), true);
  EXPECT_TRUE(listed.at("errors").as_array().empty());
  ASSERT_EQ(listed.at("warnings").as_array().size(), 1U);
  EXPECT_THAT(listed.at("warnings").at(0).as_string().c_str(), StartsWith("[outbox] is enabled"));
  EXPECT_EQ(run("check", with("")).err, "");
}

}  // namespace
}  // namespace postrider::cli
