// SPDX-License-Identifier: Apache-2.0
#include "publishers/nats/settings.hpp"

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include "postrider/error.hpp"

namespace postrider::nats {
namespace {

namespace urls = boost::urls;

constexpr std::size_t most_servers = 16;

[[noreturn]] void refuse(std::string_view why) {
  throw Error(
      ErrorCode::invalid_argument, "cannot read the NATS URL", why,
      "write nats://user:password@host:port or tls://host:port, several separated by commas, with special "
      "characters percent-encoded");
}

void read_server(std::string_view text, Settings& settings) {
  const auto parsed = urls::parse_uri({text.data(), text.size()});
  if (parsed.has_error()) refuse("it is no URL: " + parsed.error().message());
  const urls::url_view& url = *parsed;
  const bool tls = url.scheme() == "tls";
  if (!tls && url.scheme() != "nats") refuse("it begins with neither nats:// nor tls://");
  if (!url.has_authority() || url.encoded_host().empty()) refuse("it names no host");
  // Where the port is no number, the parser takes the rest of it for the path.
  if (!url.encoded_path().empty() && url.encoded_path() != "/")
    refuse("nothing may stand behind host and port");
  if (url.has_query() || url.has_fragment()) refuse("it has a part behind '?' or '#'");
  if (url.has_port() && !url.port().empty() && url.port_number() == 0) {
    refuse("the port must be a number from 1 to 65535");
  }
  const auto host = url.encoded_host();
  std::string server = tls ? "tls://" : "nats://";
  server.append(host.data(), host.size());
  server += ":" + std::to_string(url.port_number() == 0 ? 4222 : url.port_number());
  const bool first = settings.servers.empty();
  settings.servers.push_back(std::move(server));
  settings.tls = settings.tls || tls;
  if (!url.has_userinfo()) return;
  if (!first) refuse("user and password belong to the first server, and are for all");
  if (url.has_password()) {
    settings.username = url.user();
    settings.password = url.password();
  } else {
    settings.token = url.user();
  }
}

}  // namespace

std::string Settings::place() const {
  return servers.front() + (servers.size() > 1 ? ", …" : "");
}

Settings parse_url(std::string_view text) {
  constexpr std::size_t longest = 8192;
  if (text.size() > longest) refuse("it is too long");
  Settings settings;
  for (;;) {
    const std::size_t comma = text.find(',');
    if (settings.servers.size() == most_servers) refuse("it names more than 16 servers");
    read_server(text.substr(0, comma), settings);
    if (comma == std::string_view::npos) return settings;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace postrider::nats
