// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/refusals.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "app/daemon/sink_set.hpp"
#include "app/http/tls_context.hpp"
#include "core/without_prefix.hpp"
#include "postrider/error.hpp"
#include "postrider/open.hpp"
#include "storage/sqlite_file.hpp"

namespace postrider::daemon {
namespace {

namespace fs = std::filesystem;
using config::DaemonConfig;

/// What is wrong with an option is told with the line that it stands in.
template <class Run>
auto placed(const DaemonConfig& config, const std::string& option, const Run& run) {
  try {
    return run();
  } catch (const Error& error) {
    const auto place = config.places.find(option);
    if (place == config.places.end()) throw;
    throw Error(error.code(), place->second + ": " + option + " is refused", without_prefix(error.what()));
  }
}

/// All of it, in the order of the tables.
std::vector<Error> refusals_of(const DaemonConfig& config) {
  std::vector<Error> all;
  const auto judge = [&](const auto& part) {
    try {
      part();
    } catch (const Error& error) {
      all.push_back(error);
    }
  };
  judge([&] {
    // Whoever makes the file says what is wrong with it.
    if (!would_make_file(config.storage.url)) (void)open_storage(config, [](LogLevel, std::string_view) {});
  });
  judge([&] { (void)listen_address(config); });
  judge([&] { (void)tokens_of(config); });
  judge([&] {
    const DaemonConfig::Server& server = config.server;
    if (!server.tls_certificate.empty()) (void)http::make_tls_context(server.tls_certificate, server.tls_key);
  });
  for (Error& error : refused_sinks(config.sinks)) all.push_back(std::move(error));
  return all;
}

}  // namespace

http::ListenAddress listen_address(const DaemonConfig& config) {
  const bool guarded = !config.server.tls_certificate.empty() && !config.server.token_file.empty();
  return placed(config, "server.listen", [&] { return http::parse_listen(config.server.listen, guarded); });
}

std::unique_ptr<Storage> open_storage(const DaemonConfig& config, const LogCallback& log) {
  StorageOptions options = config.storage.options;
  // What a client has been told to send again may still get through: longer than a request takes.
  options.io_timeout = std::max<Duration>(options.io_timeout, 2 * config.server.request_timeout);
  options.log = log;
  return placed(config, "storage.url", [&] { return open(config.storage.url, options); });
}

std::vector<api::TokenRecord> tokens_of(const DaemonConfig& config) {
  if (config.server.token_file.empty()) return {};
  return placed(config, "server.token-file", [&] { return api::read_tokens(config.server.token_file); });
}

bool would_make_file(const std::string& url) {
  if (!url.starts_with("sqlite:")) return false;
  std::optional<std::string> path;
  try {
    path = sqlite_file_of(url);
  } catch (const Error&) {
    return false;  // whoever opens it says what is wrong, with the line
  }
  std::error_code error;
  const fs::path whole = fs::absolute(*path, error);
  return !error && !fs::exists(whole, error) && ::access(whole.parent_path().c_str(), W_OK) == 0;
}

std::unique_ptr<Daemon> make_daemon(const DaemonConfig& config, const LogCallback& log) {
  try {
    return std::make_unique<Daemon>(config, log);
  } catch (const Error&) {
    config::refuse_all(refusals_of(config));
    throw;
  }
}

}  // namespace postrider::daemon
