// SPDX-License-Identifier: Apache-2.0
#include "app/http/listen_address.hpp"

#include <boost/url.hpp>
#include <charconv>

#include "postrider/error.hpp"

namespace postrider::http {

std::string url_of(const ListenAddress& address, std::uint16_t port, bool tls) {
  const std::string host = address.host == "0.0.0.0" ? "127.0.0.1"
                           : address.host == "::"    ? "::1"
                                                     : address.host;
  const bool v6 = host.find(':') != std::string::npos;
  return (tls ? "https://" : "http://") + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

ListenAddress parse_listen(std::string_view text, bool guarded) {
  const std::string what = "cannot listen on '" + std::string(text) + "'";
  const auto authority = boost::urls::parse_authority(boost::urls::string_view(text.data(), text.size()));
  if (!authority.has_value() || !authority->has_port() || authority->has_userinfo() ||
      authority->port().empty()) {
    throw Error(ErrorCode::invalid_argument, what, "it is no address with a port",
                "write it as in 127.0.0.1:3000 or [::1]:3000");
  }
  ListenAddress address;
  // Not `port_number`, which takes 99999 for another one. The parser has seen that there are digits only.
  const std::string port(authority->port());
  if (std::from_chars(port.data(), port.data() + port.size(), address.port).ec != std::errc{}) {
    throw Error(ErrorCode::invalid_argument, what, "ports go up to 65535",
                "write it as in 127.0.0.1:3000; port 0 lets the system choose");
  }
  bool loopback = false;
  if (authority->host_type() == boost::urls::host_type::ipv4) {
    loopback = authority->host_ipv4_address().is_loopback();
    address.host = std::string(authority->host_address());
  } else if (authority->host_type() == boost::urls::host_type::ipv6) {
    loopback = authority->host_ipv6_address().is_loopback();
    address.host = std::string(authority->host_address());
  } else if (authority->host_address() == "localhost") {
    loopback = true;
    address.host = "127.0.0.1";
  } else {
    throw Error(ErrorCode::invalid_argument, what, "names are not looked up", "write an IP address");
  }
  if (!loopback && !guarded) {
    throw Error(
        ErrorCode::unsupported, what,
        "others than this machine could reach it, and there are not both TLS and tokens to keep them off",
        "listen on 127.0.0.1 or ::1; or use `postrider serve` with server.tls-certificate, server.tls-key "
        "and "
        "server.token-file");
  }
  return address;
}

}  // namespace postrider::http
