// SPDX-License-Identifier: Apache-2.0
#include "app/cli/eventlog_command.hpp"

#include <algorithm>
#include <boost/url.hpp>
#include <charconv>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "app/api/event_log_api.hpp"
#include "app/api/retention.hpp"
#include "app/api/rfc3339.hpp"
#include "app/http/server.hpp"
#include "core/what_of.hpp"
#include "postrider/error.hpp"
#include "postrider/open.hpp"

namespace postrider::cli {
namespace {

constexpr std::time_t pause_before_retry = 2;  // seconds
constexpr Duration pause_between_lines = std::chrono::seconds{2};

/// SIGTERM and SIGINT, waited for by one thread. Others must be started after it is made.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  void wait() const {
    int signal = 0;
    sigwait(&signals_, &signal);
  }
  /// False when none came in that time.
  [[nodiscard]] bool wait_for(std::time_t seconds) const {
    const timespec timeout{seconds, 0};
    return sigtimedwait(&signals_, nullptr, &timeout) > 0;
  }
  /// From now on one more of them ends the process at once.
  void release() const { pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr); }

 private:
  sigset_t signals_{};
};

/// Opens and migrates; a database that is away is waited for. Null when told to stop meanwhile.
std::unique_ptr<Storage> open_storage(const EventlogOptions& options, const StopSignals& signals,
                                      const LogCallback& log) {
  StorageOptions storage_options;
  storage_options.schema = Identifier(options.schema);
  storage_options.sqlite_full_sync = !options.relaxed_sync;
  storage_options.log = log;
  std::unique_ptr<Storage> storage = open(options.storage, storage_options);
  for (;;) {
    try {
      storage->migrate();
      return storage;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unavailable && !error.retryable()) throw;
      log(LogLevel::warning, what_of(error) + " (trying again until it is there)");
    }
    if (signals.wait_for(pause_before_retry)) return nullptr;
  }
}

std::string url_of(const ListenAddress& address, std::uint16_t port) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return "http://" + (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(port);
}

/// Opening would make the file, and a typing error look like an empty log.
void require_file(const std::string& url) {
  constexpr std::string_view scheme = "sqlite:";
  if (!url.starts_with(scheme)) return;
  std::string_view path = std::string_view(url).substr(scheme.size());
  if (path.starts_with("//")) path.remove_prefix(2);
  if (path.empty() || std::filesystem::exists(path)) return;
  throw Error(ErrorCode::unavailable, "cannot purge " + url, "there is no such file",
              "is --storage the one that `postrider eventlog` serves?");
}

int purge(const PurgeOptions& options, Duration age) {
  const TimePoint time = Clock::system().now() - age;
  StorageOptions storage_options;
  storage_options.schema = Identifier(options.schema);
  storage_options.log = log_to_stderr(LogLevel::warning);
  const std::unique_ptr<Storage> storage = open(options.storage, storage_options);
  EntryStore& store = storage->entry_store();
  const std::int64_t all = store.count_before(time);
  const std::string which = " events from before " + api::format_time(time);
  if (options.dry_run) {
    std::cout << "postrider: there are " << all << which << "; nothing was removed" << std::endl;
    return 0;
  }
  SteadyPoint next_line = Clock::system().steady_now() + pause_between_lines;
  const std::int64_t removed = api::purge_entries(store, time, [&](std::int64_t so_far) {
    if (Clock::system().steady_now() >= next_line) {
      next_line += pause_between_lines;
      std::cout << "postrider: removed " << so_far << " of " << std::max(all, so_far) << std::endl;
    }
    return true;
  });
  std::cout << "postrider: removed " << removed << which << std::endl;
  return 0;
}

}  // namespace

ListenAddress parse_listen(std::string_view text) {
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
  if (!loopback) {
    throw Error(
        ErrorCode::unsupported, what,
        "others than this machine could reach it, and there is neither TLS nor a token to keep them off",
        "listen on 127.0.0.1 or ::1, and put a proxy that has both in front");
  }
  return address;
}

int run_eventlog(const EventlogOptions& options) {
  const ListenAddress address = parse_listen(options.listen);
  std::optional<Duration> retention_age;
  if (!options.retention.empty()) retention_age = api::parse_age("--retention", options.retention);
  const StopSignals signals;
  const LogCallback log = log_to_stderr(LogLevel::info);
  const std::unique_ptr<Storage> storage = open_storage(options, signals, log);
  if (storage == nullptr) return 0;

  api::EventLogApi api(*storage, {.max_batch = options.max_batch, .log = log});
  http::Router router;
  api.add_routes(router);
  http::Server server(std::move(router), {.address = address.host,
                                          .port = address.port,
                                          .max_connections = options.max_connections,
                                          .allowed_hosts = {"localhost", "127.0.0.1", "::1", address.host},
                                          .log = log});
  std::optional<api::Retention> retention;
  if (retention_age.has_value()) {
    retention.emplace(storage->entry_store(), *retention_age, Clock::system(), log);
    retention->start();
  }
  server.start();
  std::cout << "postrider: event log API on " << url_of(address, server.port()) << ", storage "
            << storage->name() << std::endl;

  signals.wait();
  signals.release();
  std::cout << "postrider: stopping, requests that have begun are answered" << std::endl;
  api.drain();
  const bool drained = server.stop(std::chrono::seconds(options.drain_seconds));
  api.stop();
  if (retention.has_value()) retention->stop();
  std::cout << (drained ? "postrider: stopped" : "postrider: stopped; requests that took too long were cut")
            << std::endl;
  return drained ? 0 : 1;
}

int run_purge(const PurgeOptions& options) {
  const Duration age = api::parse_age("--older-than", options.older_than);
  require_file(options.storage);
  try {
    return purge(options, age);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::schema) throw;
    // The library's hint is for programs.
    throw Error(
        ErrorCode::schema, "cannot purge the event log",
        "the tables of the event log are not there, or those of another version",
        "are --storage and --schema those that `postrider eventlog` serves? It makes and migrates the "
        "tables when it starts");
  }
}

}  // namespace postrider::cli
