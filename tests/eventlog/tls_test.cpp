// SPDX-License-Identifier: Apache-2.0
// `postrider serve` with TLS and tokens, and the logger's client on the other side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <csignal>
#include <fstream>

#include "app/api/access.hpp"
#include "postrider/http_event_log_client.hpp"
#include "support/child_process.hpp"
#include "support/places.hpp"
#include "support/temp_dir.hpp"
#include "support/tls_identity.hpp"

namespace postrider::test {
namespace {

using ::testing::HasSubstr;

class ServeTls : public ::testing::Test {
 protected:
  void SetUp() override {
    authority_.save_certificate(folder_.file("ca.pem"));
    use(TlsIdentity::server(authority_, "IP:127.0.0.1"));
    add("writer", api::Role::operator_);
    std::ofstream(folder_.file("p.toml"))
        << "[storage]\nurl = \"sqlite:" << folder_.file("p.db")
        << "\"\n[eventlog]\nenabled = true\n[server]\n"
        << "listen = \"127.0.0.1:0\"\ntls-certificate = \"" << folder_.file("cert.pem") << "\"\ntls-key = \""
        << folder_.file("key.pem") << "\"\ntoken-file = \"" << folder_.file("tokens") << "\"\n";
    // The shell joins what goes to standard error. (g++ 12 warns falsely of a sum of these texts.)
    std::string command = "exec ";
    command.append(test::program_path()).append(" serve -c ").append(folder_.file("p.toml")).append(" 2>&1");
    child_.emplace(std::vector<std::string>{"/bin/sh", "-c", command});
    const std::string line = child_->read_until("postrider: on https://127.0.0.1:").value_or("");
    const std::size_t at = line.find("127.0.0.1:");
    ASSERT_NE(at, std::string::npos) << line;
    std::from_chars(line.data() + at + 10, line.data() + line.size(), port_);
    ASSERT_TRUE(child_->read_until("postrider: ready"));
  }
  void TearDown() override {
    child_->signal(SIGTERM);
    EXPECT_TRUE(child_->wait().value_or(ProcessEnd{}).ok());
  }
  void use(const TlsIdentity& identity) const {
    identity.save_certificate(folder_.file("cert.pem"));
    identity.save_key(folder_.file("key.pem"));
  }
  std::string add(const std::string& name, api::Role role) {
    tokens_[name] = api::make_token();
    api::add_token(folder_.file("tokens"),
                   {.name = name, .role = role, .sha256 = api::hash_of(tokens_[name])});
    return tokens_[name];
  }
  SendResult send(const std::string& token, const std::string& ca = "ca.pem") const {
    HttpEventLogClient client({.base_url = "https://127.0.0.1:" + std::to_string(port_),
                               .bearer_token = token,
                               .ca_file = ca.empty() ? "" : folder_.file(ca)});
    const OutgoingEvent event{
        .members =
            R"("applicationId":"a","processName":"P","processStatus":"PROCESS_STEP","idempotencyKey":"k")",
        .key = "k"};
    return client.send({&event, 1});
  }

  TempDir folder_;
  const TlsIdentity authority_ = TlsIdentity::authority("ours");
  std::map<std::string, std::string> tokens_;
  std::optional<ChildProcess> child_;
  std::uint16_t port_ = 0;
};

TEST_F(ServeTls, TakesEventsFromWhoHasATokenAndTrustsIt) {
  const SendResult taken = send(tokens_["writer"]);
  EXPECT_EQ(taken.verdict, SendVerdict::delivered) << taken.reason;
  EXPECT_EQ(send("").status, 401);
  EXPECT_EQ(send("prt_nonsense").status, 401);
  const SendResult stranger = send(tokens_["writer"], "");
  EXPECT_EQ(stranger.verdict, SendVerdict::transient);
  EXPECT_EQ(stranger.status, 0) << "nothing is said to a server that is not trusted";
}

TEST_F(ServeTls, ReadsTokensAndCertificatesAgain) {
  const TlsIdentity other = TlsIdentity::authority("another");
  other.save_certificate(folder_.file("other.pem"));
  use(TlsIdentity::server(other, "IP:127.0.0.1"));
  const std::string late = add("late", api::Role::operator_);
  EXPECT_EQ(send(late).status, 401);
  child_->signal(SIGHUP);
  ASSERT_TRUE(child_->read_until("postrider info: tokens and certificates were read again"));
  EXPECT_EQ(send(late, "ca.pem").status, 0) << "the old authority has not signed the new certificate";
  EXPECT_EQ(send(late, "other.pem").verdict, SendVerdict::delivered);
}

TEST_F(ServeTls, WhatIsNoCertificateIsNotTakenOver) {
  std::ofstream(folder_.file("cert.pem")) << "nonsense";
  child_->signal(SIGHUP);
  ASSERT_TRUE(child_->read_until("postrider error: the configuration is not taken over"));
  EXPECT_EQ(send(tokens_["writer"]).verdict, SendVerdict::delivered) << "all goes on as before";
}

}  // namespace
}  // namespace postrider::test
