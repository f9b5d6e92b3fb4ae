// SPDX-License-Identifier: Apache-2.0
#include "app/cli/run_daemon.hpp"

#include <chrono>
#include <exception>
#include <iostream>
#include <utility>

#include "app/cli/daemon_log.hpp"
#include "app/cli/last_resort.hpp"
#include "app/cli/service_manager.hpp"
#include "app/cli/signals.hpp"
#include "app/daemon/daemon.hpp"
#include "app/daemon/dashboard.hpp"
#include "app/daemon/refusals.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"

namespace postrider::cli {
namespace {

using namespace std::chrono_literals;
using daemon::Daemon;

/// After that the first line is written, whether the database is there or not.
constexpr Duration usual_start = 2s;
/// For the rest of an orderly end, when all requests are answered or cut.
constexpr Duration grace = 2s;

void reload(const RunOptions& options, Daemon& daemon, const LogCallback& log) {
  if (!options.read_again) return;
  try {
    const config::ReadConfig read = options.read_again();
    daemon.reload(read.config);
    std::string rest;
    for (const std::string& name : config::changed_options(options.effective, read.effective)) {
      if (name != "server.token-file") rest += (rest.empty() ? "" : ", ") + name;
    }
    log(LogLevel::info, "postrider: tokens and certificates were read again" +
                            (rest.empty() ? std::string() : "; these options need a restart: " + rest));
  } catch (const std::exception& error) {
    log(LogLevel::error,
        "postrider: the configuration is not taken over, all goes on as before: " + what_of(error));
  }
}

/// Tells the log when something begins or ceases to hang.
class HangLog {
 public:
  explicit HangLog(const LogCallback& log) : log_(log) {}
  void note(const std::string& hanging) {
    if (hanging == last_) return;
    last_ = hanging;
    log_(LogLevel::error, hanging.empty()
                              ? std::string("postrider: nothing hangs any more")
                              : "postrider: " + hanging + " hangs: the watchdog is not fed any more");
  }

 private:
  const LogCallback& log_;
  std::string last_;
};

/// Until a signal to stop comes, or the daemon has failed.
void watch(const Signals& signals, const RunOptions& options, Daemon& daemon, const LogCallback& log) {
  ServiceManager manager;
  HangLog hang_log(log);
  bool told = false;
  for (;;) {
    // Woken often while it starts, so that whoever waits for it hears of it soon.
    const int signal = signals.wait_for(told ? manager.pause(500ms) : 20ms);
    if (signal == SIGHUP) {
      manager.reloading(Clock::system().steady_now());
      reload(options, daemon, log);
      manager.reloaded();
    }
    if (signal == SIGTERM || signal == SIGINT || daemon.failure() != nullptr) return;
    const SteadyPoint now = Clock::system().steady_now();
    const std::string hanging = manager.watched() ? daemon.hanging(now, manager.patience()) : std::string();
    hang_log.note(hanging);
    manager.status(hanging.empty() ? daemon.phase_text() : hanging + " hangs");
    if (!told && daemon.ready()) {
      told = true;
      manager.ready();
      std::cout << "postrider: ready" << std::endl;
    }
    if (hanging.empty() && manager.wants_sign(now)) manager.alive(now);
  }
}

/// How long an orderly end may take, when all goes well.
Duration time_to_end(const config::DaemonConfig& config) {
  Duration time = config.server.drain_timeout;
  if (config.outbox.enabled) time += config.outbox.options.drain_timeout;
  if (config.relay.enabled) time += config.relay.options.stop_timeout;
  return time;
}

/// Ends everything in good order, or, when that takes too long, the process. Returns the exit code.
int end_of(Daemon& daemon, const LogCallback& log) {
  const bool was_ready = daemon.ready();
  // Before it was ready it has taken nothing that could be lost.
  const LastResort last_resort(
      (was_ready ? time_to_end(daemon.config()) : Duration::zero()) + grace, [&]() -> int {
        const std::string database = "the database (" + std::string(to_string(daemon.storage().kind())) + ")";
        if (!was_ready) {
          log(LogLevel::info, "postrider: stopped while waiting for " + database);
          return 0;
        }
        log(LogLevel::error,
            "postrider: " + database + ", or a sink, has not answered within the drain timeout, given up: " +
                counted(daemon.unfinished_entries(), "event") +
                " of which it is not known whether they are stored (nobody was told that they are), " +
                counted(daemon.connections(), "connection") + " cut");
        return exit_gave_up;
      });
  const std::exception_ptr failure = daemon.failure();
  if (failure == nullptr)
    std::cout << "postrider: stopping, requests that have begun are answered" << std::endl;
  const bool drained = daemon.stop();
  if (failure != nullptr) std::rethrow_exception(failure);
  std::cout << (drained ? "postrider: stopped" : "postrider: stopped; requests that took too long were cut")
            << std::endl;
  return drained ? 0 : 1;
}

}  // namespace

int run_daemon(const config::DaemonConfig& config, const RunOptions& options) {
  const Signals signals;
  const LogCallback log = daemon_log(config.log_level);
  const std::unique_ptr<Daemon> made = daemon::make_daemon(config, log);
  Daemon& daemon = *made;
  daemon.start();
  if (!options.greeting.empty()) std::cout << options.greeting << std::flush;
  daemon.await_first_attempt(usual_start);
  if (daemon.failure() == nullptr) {
    std::cout << "postrider: " << options.what << ' ' << daemon.url() << ", storage "
              << daemon.storage().name();
    if (!daemon.ready()) {
      std::cout << ", which does not answer yet: "
                << (daemon.config().storage.wait ? "waiting for it" : "it is not waited for");
    }
    const auto& server = daemon.config().server;
    if (server.management && server.dashboard && !daemon::dashboard_assets().empty())
      std::cout << ", dashboard " << daemon.url() << "/ui";
    std::cout << std::endl;
    if (const std::string trouble = daemon.untold_trouble(); !trouble.empty())
      log(LogLevel::warning, "postrider: " + trouble);
    watch(signals, options, daemon, log);
  }
  signals.release();
  ServiceManager::stopping();
  return end_of(daemon, log);
}

}  // namespace postrider::cli
