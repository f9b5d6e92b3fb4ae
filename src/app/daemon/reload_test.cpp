// SPDX-License-Identifier: Apache-2.0
// What a SIGHUP takes over, and what it leaves.
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <filesystem>
#include <optional>

#include "app/daemon/daemon_fixture.hpp"
#include "support/tls_identity.hpp"

namespace postrider::daemon {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::TlsIdentity;

/// On SQLite: the database has no part in it.
class ReloadTest : public ::testing::Test {
 protected:
  /// A daemon on loopback with a token file, and more options of [server].
  std::unique_ptr<Daemon> started(const std::string& more = {}) {
    text_ = "[storage]\nurl = \"sqlite:" + folder_.file("x.db") +
            "\"\n[server]\nlisten = \"127.0.0.1:0\"\ntoken-file = \"" + tokens_ + "\"\n" + more;
    auto daemon = make_daemon(text_, log_.callback());
    daemon->start();
    EXPECT_TRUE(eventually([&] { return daemon->ready(); }));
    return daemon;
  }
  std::string add(const std::string& name, std::optional<TimePoint> expires = {}) {
    const std::string token = api::make_token();
    api::add_token(
        tokens_,
        {.name = name, .role = api::Role::viewer, .sha256 = api::hash_of(token), .expires = expires});
    return token;
  }
  static int status(const Daemon& daemon, const std::string& token) {
    return ask(daemon, "GET", "/api/me", "Authorization: Bearer " + token + "\r\n").status;
  }
  void use(const TlsIdentity& identity) const {
    identity.save_certificate(folder_.file("cert.pem"));
    identity.save_key(folder_.file("key.pem"));
  }
  /// Who the daemon says that it is, as its certificate has it.
  static std::string certificate_of(const Daemon& daemon) {
    namespace asio = boost::asio;
    asio::io_context io;
    asio::ssl::context context(asio::ssl::context::tls_client);
    asio::ssl::stream<asio::ip::tcp::socket> stream(io, context);
    stream.next_layer().connect({asio::ip::address_v4::loopback(), daemon.port()});
    stream.handshake(asio::ssl::stream_base::client);
    const std::unique_ptr<X509, TlsIdentity::Deleter> shown(
        ::SSL_get1_peer_certificate(stream.native_handle()));
    return std::to_string(::ASN1_INTEGER_get(::X509_get0_serialNumber(shown.get())));
  }

  test::TempDir folder_;
  const std::string tokens_ = folder_.file("tokens");
  LogLines log_;
  std::string text_;
};

TEST_F(ReloadTest, ATokenFileWithoutTokensIsTakenOverAndToldLoudly) {
  const std::string token = add("ops");
  const auto daemon = started();
  EXPECT_EQ(status(*daemon, token), 200);
  EXPECT_EQ(log_.with("everybody is refused"), 0);
  (void)api::remove_token(tokens_, "ops");
  daemon->reload(parsed_config(text_));
  EXPECT_EQ(status(*daemon, token), 401) << "whoever revokes the last one means it";
  EXPECT_EQ(log_.with("tokens has no token: everybody is refused with a 401. Hint: "), 1);
  (void)add("old", Clock::system().now() - 1h);
  daemon->reload(parsed_config(text_));
  EXPECT_EQ(log_.with("tokens has no token whose time is not over: everybody is refused"), 1);
  const std::string fresh = add("new", Clock::system().now() + 1h);
  daemon->reload(parsed_config(text_));
  EXPECT_EQ(status(*daemon, fresh), 200);
  EXPECT_EQ(log_.with("everybody is refused"), 2);
}

TEST_F(ReloadTest, WhatFailsLeavesTokensAndCertificateAsTheyWere) {
  const TlsIdentity authority = TlsIdentity::authority("ours");
  use(TlsIdentity::server(authority, "IP:127.0.0.1"));
  (void)add("ops");
  const auto daemon = started("tls-certificate = \"" + folder_.file("cert.pem") + "\"\ntls-key = \"" +
                              folder_.file("key.pem") + "\"\n");
  const std::string first = certificate_of(*daemon);
  use(TlsIdentity::server(authority, "IP:127.0.0.1"));
  std::filesystem::rename(tokens_, folder_.file("aside"));
  EXPECT_THROW(daemon->reload(parsed_config(text_)), Error);
  EXPECT_EQ(certificate_of(*daemon), first) << "the log says that all goes on as before";
  std::filesystem::rename(folder_.file("aside"), tokens_);
  daemon->reload(parsed_config(text_));
  EXPECT_NE(certificate_of(*daemon), first);
}

}  // namespace
}  // namespace postrider::daemon
