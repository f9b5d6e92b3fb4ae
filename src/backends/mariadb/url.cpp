// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/url.hpp"

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>
#include <optional>

#include "postrider/error.hpp"

namespace postrider::mariadb {
namespace {

namespace urls = boost::urls;

constexpr std::string_view url_form =
    "write mariadb://user:password@host:port/database, with special characters percent-encoded";
constexpr std::string_view port_bounds = "the port must be a number from 1 to 65535";

[[noreturn]] void refuse(std::string_view why, std::string_view hint = url_form) {
  // Not the URL itself: it may hold a password in any place of a malformed text.
  throw Error(ErrorCode::invalid_argument, "cannot read the MariaDB URL", why, hint);
}

std::optional<unsigned> number_in(std::string_view text, unsigned least, unsigned most) {
  unsigned value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = code == std::errc{} && end == text.data() + text.size();
  return whole && value >= least && value <= most ? std::optional(value) : std::nullopt;
}

std::chrono::seconds seconds_of(std::string_view name, std::string_view text) {
  const auto value = number_in(text, 0, 86'400);
  if (!value) refuse("parameter '" + std::string(name) + "' must be a number of seconds, 0 to 86400");
  return std::chrono::seconds{*value};
}

SslMode ssl_mode_of(std::string_view text) {
  if (text == "off") return SslMode::off;
  if (text == "required") return SslMode::required;
  if (text == "verify") return SslMode::verify;
  refuse("parameter 'ssl_mode' must be off, required or verify");
}

void read_parameter(ConnectSettings& settings, const std::string& name, std::string value) {
  if (name == "socket") {
    if (value.empty()) refuse("parameter 'socket' is empty");
    settings.socket = std::move(value);
  } else if (name == "ssl_mode") {
    settings.ssl = ssl_mode_of(value);
  } else if (name == "ssl_ca") {
    settings.ssl_ca = std::move(value);
  } else if (name == "read_timeout") {
    settings.read_timeout = seconds_of(name, value);
  } else if (name == "write_timeout") {
    settings.write_timeout = seconds_of(name, value);
  } else {
    refuse("unknown parameter '" + name + "'",
           "known are socket, ssl_mode, ssl_ca, read_timeout, write_timeout");
  }
}

/// Whether something other than a number stands where the port belongs. The parser would take it for the
/// beginning of the path.
bool has_odd_port(std::string_view text) {
  const std::size_t slashes = text.find("://");
  if (slashes == std::string_view::npos) return false;
  std::string_view host = text.substr(slashes + 3);
  host = host.substr(0, host.find_first_of("/?#"));
  host.remove_prefix(host.rfind('@') + 1);  // without one: npos + 1 is 0
  if (host.starts_with('[')) host.remove_prefix(std::min(host.find(']'), host.size()));
  const std::size_t colon = host.find(':');
  return colon != std::string_view::npos &&
         host.find_first_not_of("0123456789", colon + 1) != std::string_view::npos;
}

}  // namespace

std::string ConnectSettings::name() const {
  urls::url url("mariadb://localhost");
  if (socket.empty()) {
    if (host.find(':') != std::string::npos) {
      url.set_host_ipv6(urls::ipv6_address(host));
    } else {
      url.set_host(host);
    }
    url.set_port_number(static_cast<std::uint16_t>(port));
  } else {
    url.params().append({"socket", socket});
  }
  if (!user.empty()) url.set_user(user);
  url.segments().push_back(database);
  const auto text = url.buffer();
  return {text.data(), text.size()};
}

ConnectSettings parse_url(std::string_view text) {
  if (has_odd_port(text)) refuse(port_bounds);
  const auto parsed = urls::parse_uri({text.data(), text.size()});
  if (parsed.has_error()) refuse("it is no URL: " + parsed.error().message());
  const urls::url_view& url = *parsed;
  if (url.scheme() != "mariadb" && url.scheme() != "mysql")
    refuse("it begins with neither mariadb:// nor mysql://");
  if (!url.has_authority()) refuse("the two slashes before the host are missing");
  if (url.has_fragment()) refuse("it has a part behind '#'", "write # as %23");

  ConnectSettings settings;
  if (url.host_type() == urls::host_type::ipv6) {
    settings.host = url.host_ipv6_address().to_string();
  } else if (!url.encoded_host().empty()) {
    settings.host = url.host();
  }
  if (url.has_port() && !url.port().empty()) {
    const auto port = number_in({url.port().data(), url.port().size()}, 1, 65'535);
    if (!port) refuse(port_bounds);
    settings.port = *port;
  }
  settings.user = url.user();
  settings.password = url.password();
  const auto segments = url.segments();
  if (segments.size() != 1 || segments.front().empty()) refuse("it must name one database");
  settings.database = segments.front();
  for (const auto& parameter : url.params()) read_parameter(settings, parameter.key, parameter.value);
  // A NUL would cut the text short where the client library takes it.
  for (const std::string* part : {&settings.host, &settings.user, &settings.password, &settings.database,
                                  &settings.socket, &settings.ssl_ca}) {
    if (part->find('\0') != std::string::npos) refuse("it holds a NUL character");
  }
  return settings;
}

}  // namespace postrider::mariadb
