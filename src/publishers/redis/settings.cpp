// SPDX-License-Identifier: Apache-2.0
#include "publishers/redis/settings.hpp"

#include <sys/un.h>

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>

#include "postrider/error.hpp"

namespace postrider::redis {
namespace {

namespace urls = boost::urls;

constexpr std::string_view url_form =
    "write redis://user:password@host:port/database or unix:///path/to/redis.sock?db=database, with special "
    "characters percent-encoded";

[[noreturn]] void refuse(std::string_view why, std::string_view hint = url_form) {
  throw Error(ErrorCode::invalid_argument, "cannot read the Redis URL", why, hint);
}

int number_in(std::string_view text, int least, int most, std::string_view what) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    refuse(std::string(what) + " must be a number from " + std::to_string(least) + " to " +
           std::to_string(most));
  }
  return value;
}

int database_of(std::string_view text) {
  constexpr int most = 1'000'000;
  return number_in(text, 0, most, "the database");
}

void read_tcp(const urls::url_view& url, Settings& settings) {
  if (url.host_type() == urls::host_type::ipv6) {
    settings.host = url.host_ipv6_address().to_string();
  } else {
    settings.host = url.host();
  }
  if (settings.host.empty() || settings.host.find('\0') != std::string::npos) refuse("it names no host");
  if (url.has_port()) {
    settings.port =
        static_cast<std::uint16_t>(number_in({url.port().data(), url.port().size()}, 1, 65'535, "the port"));
  }
  if (url.has_query()) refuse("a redis:// URL has no parameters");
  const std::string path = url.path();
  // Where the port is no number, the parser takes the rest of it for the path.
  if (!path.empty() && !path.starts_with('/')) refuse("the port must be a number from 1 to 65535");
  if (path.size() > 1) settings.database = database_of(std::string_view(path).substr(1));
}

void read_unix(const urls::url_view& url, Settings& settings) {
  if (!url.encoded_host().empty() || url.has_port())
    refuse("a unix:// URL has no host", "write three slashes");
  settings.socket = url.path();
  if (settings.socket.size() < 2 || settings.socket.find('\0') != std::string::npos ||
      settings.socket.size() >= sizeof(sockaddr_un::sun_path)) {
    refuse("the path of a Unix socket has 2 to " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
           " bytes");
  }
  for (const auto& parameter : url.params()) {
    if (parameter.key != "db") refuse("a unix:// URL has no parameter but db");
    settings.database = database_of(parameter.value);
  }
}

}  // namespace

std::string Settings::place() const {
  if (!socket.empty()) return "unix://" + socket;
  const bool ipv6 = host.find(':') != std::string::npos;
  return "redis://" + (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Settings parse_url(std::string_view text) {
  constexpr std::size_t longest = 8192;
  if (text.size() > longest) refuse("it is too long");
  const auto parsed = urls::parse_uri({text.data(), text.size()});
  if (parsed.has_error()) refuse("it is no URL: " + parsed.error().message());
  const urls::url_view& url = *parsed;
  if (url.scheme() == "rediss") {
    refuse("TLS is not supported, because hiredis of Debian 12 has none",
           "use a Unix socket, or a tunnel such as stunnel on this machine");
  }
  const bool local = url.scheme() == "unix";
  if (!local && url.scheme() != "redis") refuse("it begins with neither redis:// nor unix://");
  if (!url.has_authority()) refuse("the two slashes behind the scheme are missing");
  if (url.has_fragment()) refuse("it has a part behind '#'", "write # as %23");
  Settings settings;
  local ? read_unix(url, settings) : read_tcp(url, settings);
  settings.username = url.user();
  settings.password = url.password();
  return settings;
}

}  // namespace postrider::redis
