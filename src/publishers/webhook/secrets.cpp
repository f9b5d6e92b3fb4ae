// SPDX-License-Identifier: Apache-2.0
#include "publishers/webhook/secrets.hpp"

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <string_view>

namespace postrider {
namespace {

constexpr std::size_t shortest_part = 6;

}  // namespace

std::vector<std::string> webhook_secrets(const WebhookSinkOptions& options) {
  std::vector<std::string> secrets;
  const auto add = [&](std::string_view secret, std::size_t shortest = 1) {
    if (secret.size() >= shortest) secrets.emplace_back(secret);
  };
  add(options.url);
  if (const auto url = boost::urls::parse_uri(options.url)) {
    add(url->encoded_target(), 2);
    add(url->encoded_path(), 2);
    add(url->encoded_query());
    for (const auto segment : url->encoded_segments()) {
      add(segment, shortest_part);
      add(segment.decode(), shortest_part);
    }
    for (const auto parameter : url->encoded_params()) {
      add(parameter.value, shortest_part);
      add(parameter.value.decode(), shortest_part);
    }
  }
  for (const auto& header : options.headers) {
    const std::string_view value = header.second;
    add(value);
    // "Bearer …": a receiver may have taken it apart.
    if (const std::size_t space = value.find(' '); space != std::string_view::npos)
      add(value.substr(space + 1));
  }
  // A part that stood before the whole would leave the rest of it.
  std::sort(secrets.begin(), secrets.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  return secrets;
}

}  // namespace postrider
