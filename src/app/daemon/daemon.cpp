// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/daemon.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "app/api/audit_api.hpp"
#include "app/api/json_values.hpp"
#include "app/api/openapi.hpp"
#include "app/daemon/dashboard.hpp"
#include "app/daemon/management.hpp"
#include "app/daemon/overview_api.hpp"
#include "app/daemon/refusals.hpp"
#include "app/http/listen_address.hpp"
#include "app/http/static_body.hpp"
#include "core/option_check.hpp"
#include "core/what_of.hpp"
#include "core/without_prefix.hpp"
#include "postrider/error.hpp"

namespace postrider::daemon {
namespace {

namespace json = boost::json;
using config::DaemonConfig;

constexpr Duration ready_timeout = std::chrono::seconds{3};

/// With what is not asked for: a node without a name is called by its host and process, everywhere, and the
/// relay's end takes no longer than the server's.
DaemonConfig completed(DaemonConfig config) {
  if (config.node_name.empty()) config.node_name = process_name();
  config.relay.options.stop_timeout = config.server.drain_timeout;
  return config;
}

/// What can be meant, and mostly is not.
void warn_of(const DaemonConfig& config, const LogCallback& log) {
  if (!config.outbox.enabled || !config.outbox.routes.empty()) return;
  log(LogLevel::warning,
      std::string("postrider: [outbox] is enabled and has no route: ") +
          (config.outbox.unrouted_is_dead ? "every event of the outbox becomes a dead letter"
                                          : "every event of the outbox is forgotten, and goes nowhere") +
          ". Hint: add [[outbox.routes]] with a sink, or write enabled = false where another program "
          "delivers");
}

/// What needs no database, before one is made.
DaemonConfig checked(DaemonConfig config) {
  (void)listen_address(config);
  return config;
}

http::Problem no_event_log() {
  return {.status = 404,
          .code = "not-found",
          .detail = "the Event Log API is not switched on here",
          .hint = "write enabled = true below [eventlog] of the configuration, and start the server again"};
}

std::string no_answer_of(const Storage& storage) {
  return "the database (" + std::string(to_string(storage.kind())) + ") does not answer";
}

}  // namespace

Daemon::Daemon(DaemonConfig config, LogCallback log)
    : config_(completed(checked(std::move(config)))),
      log_(guarded(std::move(log))),
      storage_(open_storage(config_, log_)),
      sinks_(config_.sinks, log_),
      engines_(*storage_, config_, sinks_, metrics_, log_),
      figures_(*storage_, config_.storage.options.schema, metrics_, Clock::system()),
      access_(Clock::system()),
      store_(*storage_, {.metrics = &metrics_, .log = log_}),
      write_trouble_(Clock::system()),
      live_([this] { return api::serialized(overview()); }, Clock::system()),
      spill_(config_.spill.folders, Clock::system()) {
  const http::ListenAddress address = listen_address(config_);
  if (!config_.server.token_file.empty()) access_.use(read_tokens(config_));
  warn_of(config_, log_);
  if (config_.eventlog.enabled) {
    event_log_.emplace(
        *storage_,
        api::EventLogApiOptions{
            .max_batch = config_.eventlog.max_batch, .access = &access_, .starts_later = true, .log = log_});
    if (config_.eventlog.retention) {
      retention_.emplace(storage_->entry_store(), *config_.eventlog.retention, Clock::system(), log_);
    }
  }
  http::Router router;
  add_routes(router);
  std::vector<std::string> hosts{"localhost", "127.0.0.1", "::1", address.host};
  hosts.insert(hosts.end(), config_.server.allowed_hosts.begin(), config_.server.allowed_hosts.end());
  server_ = std::make_unique<http::Server>(
      std::move(router), http::ServerOptions{.address = address.host,
                                             .port = address.port,
                                             .max_connections = config_.server.max_connections,
                                             .request_timeout = config_.server.request_timeout,
                                             .tls_certificate = config_.server.tls_certificate,
                                             .tls_key = config_.server.tls_key,
                                             .allowed_hosts = std::move(hosts),
                                             .public_hosts = config_.server.allowed_hosts,
                                             .log = log_});
  vitals_.emplace(*server_, engines_);
}

Daemon::~Daemon() {
  stop();
}

void Daemon::add_routes(http::Router& router) {
  using http::Lane;
  using http::Reply;
  using http::Request;
  if (event_log_) {
    event_log_->add_routes(router);
  } else {
    // Whoever expects it there is told why it is not.
    for (const char* const pattern : {"/v1/events", "/v1/events/{id}"}) {
      for (const http::Method method : {http::Method::get, http::Method::post}) {
        router.add(
            {.method = method,
             .pattern = pattern,
             .lane = Lane::direct,
             .body_limit = 1,
             .admit = [](const Request&) { return std::optional(no_event_log()); },
             .handler = [](const Request&, const Reply& reply) { reply(to_response(no_event_log())); }});
      }
    }
  }
  router.add({.pattern = "/livez", .lane = Lane::direct, .handler = [](const Request&, const Reply& reply) {
                reply({.body = R"({"status":"ok"})"});
              }});
  router.add(
      {.pattern = "/readyz",
       .lane = Lane::read,
       .timeout = ready_timeout,
       .late = api::not_ready(no_answer_of(*storage_)),
       .handler = [this](const Request& request, const Reply& reply) { reply(ready_response(request)); }});
  if (config_.server.metrics) {
    router.add({.pattern = "/metrics",
                .lane = Lane::read,
                .handler = [this](const Request& request, const Reply& reply) {
                  const api::Access::Verdict verdict = access_.decide(request, api::Role::viewer);
                  reply(verdict.caller
                            ? http::Response{.body = metrics_text(),
                                             .content_type = metrics::PrometheusMetrics::content_type}
                            : to_response(verdict.problem));
                }});
  }
  if (!config_.server.management) return;
  if (config_.server.dashboard) add_dashboard_routes(router);
  router.add({.pattern = "/openapi.yaml",
              .lane = Lane::direct,
              .handler = http::static_body(std::string(api::openapi_yaml()), "application/yaml")});
  // Who asks is told at once of what is known, instead of waiting for a connection.
  const auto storage = [this]() -> Storage* { return ready() && !known_away() ? storage_.get() : nullptr; };
  const api::ApiHost host{.access = &access_,
                          .storage = storage,
                          .started = [this] { return ready(); },
                          .audit = api::audit_writer(storage, log_),
                          .log = log_,
                          .write_failed = [this](const Error& error) { write_trouble_.failed(error); }};
  mount(router,
        management_routes({.relay = [this] { return engines_.relay(); },
                           .outbox = [this] { return engines_.outbox(); },
                           .store = &store_,
                           .stuck_after = config_.queue.stuck_after,
                           .overview = [this] { return overview(); },
                           .live = &live_,
                           .access = &access_,
                           .spill = &spill_}),
        host);
}

std::string Daemon::metrics_text() {
  for (const SinkHealth& sink : sinks_.health()) {
    metrics_.record_sink(sink.name, sink.type, sink.up(), sink.counts.circuit_open, sink.counts.failures);
  }
  figures_.record_database();
  return metrics_.text();
}

json::object Daemon::overview() {
  const std::shared_ptr<const Figures> figures = figures_.latest();
  OverviewInput input{
      .figures = figures.get(),
      .observer = {.sinks = sinks_.health(), .phase = phase_text(), .runs_outbox = config_.outbox.enabled},
      .node = config_.node_name,
      .storage = storage_->name(),
      .pool = storage_->pool_stats(),
      .uptime = std::chrono::duration_cast<Duration>(Clock::system().steady_now() - started_)};
  if (ready() && engines_.relay() != nullptr) {
    input.led_pairs = static_cast<std::int64_t>(engines_.relay()->led());
  }
  return overview_json(input);
}

std::vector<api::TokenRecord> Daemon::read_tokens(const DaemonConfig& config) const {
  std::vector<api::TokenRecord> tokens = tokens_of(config);
  const TimePoint now = Clock::system().now();
  const auto good = [&](const api::TokenRecord& one) { return !one.expires || *one.expires > now; };
  if (std::none_of(tokens.begin(), tokens.end(), good)) {
    log_(LogLevel::warning,
         "postrider: " + config.server.token_file + " has " +
             (tokens.empty() ? "no token" : "no token whose time is not over") +
             ": everybody is refused with a 401. Hint: make one by postrider token create, "
             "then send SIGHUP");
  }
  return tokens;
}

void Daemon::start() {
  server_->start();
  if (config_.server.management) live_.start();
  starter_ = &owned_starter_.emplace(*storage_, StorageStarter::Options{.wait = config_.storage.wait,
                                                                        .migrate = config_.storage.migrate,
                                                                        .then = [this] { begin_work(); },
                                                                        .log = log_});
}

void Daemon::begin_work() {
  try {
    engines_.start();
    if (config_.server.metrics || config_.server.management) figures_.start();
    if (retention_) retention_->start();
    if (event_log_) event_log_->start();
  } catch (...) {
    engines_.stop();
    throw;
  }
}

void Daemon::stop_engines() {
  if (!config_.outbox.enabled && !config_.relay.enabled) return engines_.stop();  // nobody sends
  Duration patience = Duration::zero();
  if (config_.outbox.enabled) patience = std::max(patience, config_.outbox.options.drain_timeout);
  if (config_.relay.enabled) patience = std::max(patience, config_.relay.options.stop_timeout);
  // Who waits for a sink that hangs is woken when his time is over. What was on its way counts as not sent:
  // this node or another one sends it again. Without that, leadership would not be handed over.
  const std::jthread closer([&](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, patience, [] { return false; });
    if (stop.stop_requested()) return;
    log_(LogLevel::warning,
         "postrider: a sink has not answered within the drain timeout; what it was sent is sent again later");
    sinks_.close();
  });
  engines_.stop();
}

bool Daemon::stop() {
  if (stopping_.exchange(true)) return true;
  if (StorageStarter* const starter = starter_) starter->stop();
  stop_engines();
  figures_.stop();
  live_.stop();
  const bool drained = server_->stop(config_.server.drain_timeout);
  if (event_log_) event_log_->stop();
  if (retention_) retention_->stop();
  sinks_.close();
  return drained;
}

bool Daemon::ready() const {
  const StorageStarter* const starter = starter_;
  return !stopping_ && starter != nullptr && starter->state() == StorageStarter::State::ready;
}

std::exception_ptr Daemon::failure() const {
  const StorageStarter* const starter = starter_;
  return starter != nullptr ? starter->failure() : nullptr;
}

std::string Daemon::phase_text() const {
  if (stopping_) return "stopping";
  const StorageStarter* const starter = starter_;
  if (starter == nullptr) return "starting";
  switch (starter->state()) {
    case StorageStarter::State::trying: {
      // One attempt takes as long as the pool is patient; what went wrong is known before.
      const std::string trouble = storage_->pool_stats().trouble;
      if (trouble.empty()) return "starting";
      return (config_.storage.wait ? "waiting for the database: " : "the only attempt is under way: ") +
             std::string(without_prefix(trouble));
    }
    case StorageStarter::State::waiting:
      return "waiting for the database: " + std::string(without_prefix(starter->trouble()));
    case StorageStarter::State::ready:
      return "running";
    case StorageStarter::State::failed:
      return "failed: " + std::string(without_prefix(starter->trouble()));
  }
  return {};
}

std::size_t Daemon::unfinished_entries() const noexcept {
  return event_log_ ? event_log_->unfinished() : 0;
}

std::string Daemon::url() const {
  http::ListenAddress address = listen_address(config_);
  const bool all_addresses = address.host == "0.0.0.0" || address.host == "::";
  // The name that it goes by is the one that its certificate has.
  const std::vector<std::string>& names = config_.server.allowed_hosts;
  if (all_addresses && !names.empty()) address.host = names.front();
  return http::url_of(address, port(), !config_.server.tls_certificate.empty());
}

std::string Daemon::untold_trouble() const {
  const StorageStarter* const starter = starter_;
  const bool trying = starter != nullptr && starter->state() == StorageStarter::State::trying;
  return trying ? std::string(without_prefix(storage_->pool_stats().trouble)) : std::string();
}

bool Daemon::known_away() const {
  const std::shared_ptr<const Figures> figures = figures_.latest();
  // One whose tables are locked answers what does not need them.
  return figures != nullptr && !figures->database_up && !figures->blocker;
}

http::Response Daemon::ready_response(const http::Request& request) {
  bool database = false;
  bool takes_writes = false;
  bool all = false;
  std::string why = phase_text();
  if (ready() && known_away()) {
    why = no_answer_of(*storage_);
  } else if (ready()) {
    try {
      storage_->ping();
      database = true;
      // A database that answers may still take nothing: it is read-only, or full.
      all = !write_trouble_.fresh() && (!event_log_ || !event_log_->failing());
      why = all ? "ready" : "the database answers, and does not store what clients send";
      // What only our own engines have met keeps nobody from asking.
      const std::shared_ptr<const Figures> figures = figures_.latest();
      takes_writes = all && (figures == nullptr || !figures->refuses_writes);
    } catch (const Error& error) {
      log_(LogLevel::warning, "postrider: not ready: " + what_of(error));
      why = no_answer_of(*storage_);
    }
  }
  // What is behind us is not for everybody.
  const bool verbose = std::any_of(request.query.begin(), request.query.end(),
                                   [](const auto& one) { return one.first == "verbose"; }) &&
                       access_.decide(request, api::Role::viewer).caller.has_value();
  if (!verbose) {
    if (all) return {.body = R"({"status":"ready"})"};
    return to_response(api::not_ready(ready()     ? why
                                      : stopping_ ? "the server is stopping"
                                                  : "the server waits for the database (" +
                                                        std::string(to_string(storage_->kind())) + ")"));
  }
  json::array sinks;
  for (const SinkHealth& sink : sinks_.health()) sinks.push_back(sink_json(sink));
  return api::json_response(
      {{"status", all ? "ready" : "not-ready"},
       {"phase", why},
       {"database", database},
       {"takesWrites", takes_writes},
       {"storage", storage_->name()},
       {"relay", config_.relay.enabled},
       {"outbox", config_.outbox.enabled},
       {"eventLog", config_.eventlog.enabled},
       {"ledPairs", engines_.relay() == nullptr || !ready() ? 0 : engines_.relay()->led()},
       {"sinks", std::move(sinks)}},
      all ? 200 : 503);
}

void Daemon::reload(const DaemonConfig& config) {
  // A server that others can reach never loses its tokens by an edited file. Read first, taken over last:
  // what fails leaves both tokens and certificate as they were.
  std::optional<std::vector<api::TokenRecord>> tokens;
  if (!config.server.token_file.empty()) tokens = read_tokens(config);
  server_->reload_tls();
  if (tokens) access_.use(std::move(tokens));
  sinks_.revive();
  engines_.revive();
}

}  // namespace postrider::daemon
