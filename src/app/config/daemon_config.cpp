// SPDX-License-Identifier: Apache-2.0
#include "app/config/daemon_config.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "app/sinks/sink_kinds.hpp"
#include "core/what_of.hpp"
#include "core/without_prefix.hpp"
#include "postrider/error.hpp"

namespace postrider::config {
namespace {

using namespace std::chrono_literals;

/// What the library refuses is told with the table that it came from.
template <class Run>
void checked(const Section& section, std::string_view name, const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    section.refuse(name, without_prefix(error.what()));
  }
}

void read_storage(Source& source, DaemonConfig::Storage& storage) {
  Section section(source, "storage");
  StorageOptions& options = storage.options;
  section.secret("url", storage.url)
      .text("schema", storage.schema)
      .count("pool-size", options.pool_size, 1, 1000)
      .time("acquire-timeout-ms", options.acquire_timeout, 1ms, 1ms, 24h)
      .time("connect-timeout-ms", options.connect_timeout, 1ms, 1ms, 1h)
      .flag("sqlite-full-sync", options.sqlite_full_sync)
      .time("sqlite-busy-timeout-ms", options.sqlite_busy_timeout, 1ms, 0ms, 1h)
      .time("io-timeout-ms", options.io_timeout, 1ms, 100ms, 24h)
      .flag("migrate", storage.migrate)
      .flag("wait", storage.wait)
      .finish();
  if (storage.url.empty()) {
    section.refuse("url", "it is missing",
                   "write url = \"sqlite:postrider.db\" or postgresql://… below [storage]");
  }
  checked(section, "schema", [&] { options.schema = Identifier(storage.schema); });
}

void read_server(Source& source, DaemonConfig::Server& server) {
  Section section(source, "server");
  section.text("listen", server.listen)
      .count("max-connections", server.max_connections, 1, 100'000)
      .text("tls-certificate", server.tls_certificate)
      .text("tls-key", server.tls_key)
      .text("token-file", server.token_file)
      .list("allowed-hosts", server.allowed_hosts)
      .flag("management", server.management)
      .flag("metrics", server.metrics)
      .flag("dashboard", server.dashboard)
      .time("request-timeout-ms", server.request_timeout, 1ms, 1ms, 1h)
      .time("drain-timeout-ms", server.drain_timeout, 1ms, 0ms, 1h)
      .finish();
  if (server.tls_certificate.empty() != server.tls_key.empty()) {
    section.refuse(server.tls_key.empty() ? "tls-certificate" : "tls-key",
                   "a certificate and its key go together", "give both, tls-certificate and tls-key");
  }
}

/// Options of pairs, which a topic may have of its own.
void name_pair_options(Section& section, PairOptions& pair) {
  constexpr std::array<std::pair<std::string_view, PoisonAction>, 2> poison{
      {{"stop", PoisonAction::stop}, {"dead-letter", PoisonAction::dead_letter}}};
  section.time("polling-interval-ms", pair.polling_interval, 1ms, 1ms, 24h)
      .count("batch-size", pair.batch_size, 1, 10'000)
      .word<PoisonAction>("poison", pair.poison, poison)
      .number("max-failures", pair.max_failures, 1, 1'000'000);
}

void read_backoff(Source& source, const std::string& table, IdleBackoff& backoff) {
  Section(source, table)
      .flag("enabled", backoff.enabled)
      .number("threshold", backoff.threshold, 0, 1000)
      .number("multiplier", backoff.multiplier, 1, 1000)
      .time("max-seconds", backoff.max, 1s, 1s, 24h)
      .finish();
}

Tags decoded_tags(const Section& section, const std::vector<std::string>& texts) {
  Tags tags;
  checked(section, "exact-tags", [&] {
    for (const std::string& text : texts) tags.push_back(Tag::decode(text));
  });
  std::sort(tags.begin(), tags.end());
  return tags;
}

TopicConfig read_topic(Source& source, const std::string& name, const PairOptions& standard) {
  TopicConfig config{.pair = standard};
  config.topic.name = name;
  const std::string table = "relay.topics." + name;
  Section section(source, table);
  std::vector<std::string> exact;
  constexpr std::array<std::pair<std::string_view, bool>, 2> starts{{{"beginning", false}, {"head", true}}};
  bool at_head = false;
  section.list("event-types", config.topic.event_types)
      .list("required-tags", config.topic.required_tags)
      .list("any-of-tags", config.topic.any_of_tags)
      .list("exact-tags", exact)
      .list("publishers", config.publishers)
      .word<bool>("start", at_head, starts);
  name_pair_options(section, config.pair);
  section.finish();
  if (at_head) config.pair.start = StartAt::head();
  read_backoff(source, table + ".backoff", config.pair.backoff);
  config.topic.exact_tags = decoded_tags(section, exact);
  checked(section, "", [&] { config.topic.check(); });
  if (config.publishers.empty()) {
    section.refuse("publishers", "a topic without publishers does nothing",
                   "write publishers = [\"<a name of [sinks]>\"]");
  }
  return config;
}

void read_relay(Source& source, DaemonConfig::Relay& relay) {
  constexpr std::array<std::pair<std::string_view, Leadership>, 2> strategies{
      {{"global", Leadership::global}, {"balanced", Leadership::balanced}}};
  PairOptions pair;
  RelayOptions& options = relay.options;
  const std::vector<std::string> topics = source.tables_below("relay.topics");
  relay.enabled = !topics.empty();
  Section section(source, "relay");
  section.flag("enabled", relay.enabled)
      .word<Leadership>("leadership", options.leadership, strategies)
      .time("lease-ms", options.lease, 1ms, 300ms, 1h)
      .time("heartbeat-ms", options.heartbeat, 1ms, 10ms, 20min)
      .count("workers", options.workers, 1, 64)
      .count("max-workers", options.max_workers, 1, 1024);
  name_pair_options(section, pair);
  section.finish();
  if (options.heartbeat > options.lease / 3) {
    section.refuse("heartbeat-ms", "it must be at most a third of lease-ms");
  }
  if (options.max_workers < options.workers) section.refuse("max-workers", "it must not be below workers");
  read_backoff(source, "relay.backoff", pair.backoff);
  for (const std::string& name : topics) relay.topics.push_back(read_topic(source, name, pair));
}

void read_outbox(Source& source, DaemonConfig::Outbox& outbox) {
  OutboxOptions& options = outbox.options;
  // Whoever publishes is another process, whose events are seen when one looks.
  options.poller_interval = 500ms;
  // Sinks wait for their receivers; events that wait at the same time travel together.
  options.workers = 16;
  const std::size_t routes = source.elements_of("outbox.routes");
  outbox.enabled = routes != 0;
  constexpr std::array<std::pair<std::string_view, bool>, 2> unrouted{{{"dead", true}, {"done", false}}};
  Section section(source, "outbox");
  section.flag("enabled", outbox.enabled)
      .count("workers", options.workers, 1, 1024)
      .count("hot-queue-capacity", options.hot_queue_capacity, 1, 1'000'000)
      .count("cold-queue-capacity", options.cold_queue_capacity, 1, 1'000'000)
      .count("hot-queue-bytes", options.hot_queue_bytes, 1'048'576, std::size_t{1} << 40)
      .count("cold-queue-bytes", options.cold_queue_bytes, 1'048'576, std::size_t{1} << 40)
      .time("poller-interval-ms", options.poller_interval, 1ms, 1ms, 24h)
      .count("poller-batch-size", options.poller_batch_size, 1, 10'000)
      .time("poller-skip-recent-ms", options.poller_skip_recent, 1ms, 0ms, 24h)
      .time("retry-base-delay-ms", options.retry_base_delay, 1ms, 1ms, 24h)
      .time("retry-max-delay-ms", options.retry_max_delay, 1ms, 1ms, 24h * 365)
      .number("retry-max-attempts", options.retry_max_attempts, 1, 1'000'000)
      .time("lease-ms", options.lease, 1ms, 100ms, 24h)
      .flag("order-by-aggregate", options.order_by_aggregate)
      .time("drain-timeout-ms", options.drain_timeout, 1ms, 0ms, 24h)
      .word<bool>("unrouted", outbox.unrouted_is_dead, unrouted)
      .age("purge-done-after", outbox.purge_done_after)
      .age("purge-dead-after", outbox.purge_dead_after)
      .finish();
  if (options.retry_max_delay < options.retry_base_delay) {
    section.refuse("retry-max-delay-ms", "it must not be below retry-base-delay-ms");
  }
  for (std::size_t i = 0; i < routes; ++i) {
    RouteConfig route;
    Section one(source, "outbox.routes[" + std::to_string(i) + "]");
    one.text("type", route.type)
        .text("aggregate", route.aggregate)
        .text("tenant", route.tenant)
        .text("sink", route.sink)
        .finish();
    if (route.sink.empty()) one.refuse("sink", "it is missing", "name one of [sinks]");
    outbox.routes.push_back(std::move(route));
  }
}

void read_others(Source& source, DaemonConfig& config) {
  Section queue(source, "queue");
  queue.time("cleanup-interval-ms", config.queue.cleanup_interval, 1ms, 10ms, 24h)
      .time("abandoned-timeout-ms", config.queue.abandoned_timeout, 1ms, 100ms, 24h * 30)
      .age("purge-log-after", config.queue.purge_log_after)
      .time("stuck-after-ms", config.queue.stuck_after, 1ms, 1s, 24h * 30)
      .finish();
  Section eventlog(source, "eventlog");
  eventlog.flag("enabled", config.eventlog.enabled)
      .count("max-batch", config.eventlog.max_batch, 1, 100'000)
      .age("retention", config.eventlog.retention)
      .finish();
  Section spill(source, "spill");
  spill.list("folders", config.spill.folders).finish();
  constexpr std::size_t most_folders = 100;
  if (config.spill.folders.size() > most_folders) spill.refuse("folders", "there are more than 100");
  for (const std::string& folder : config.spill.folders) {
    if (folder.empty()) spill.refuse("folders", "one is empty", "name the loggers' spillover-path");
  }
  constexpr std::array<std::pair<std::string_view, LogLevel>, 4> levels{{{"debug", LogLevel::debug},
                                                                         {"info", LogLevel::info},
                                                                         {"warning", LogLevel::warning},
                                                                         {"error", LogLevel::error}}};
  Section node(source, "node");
  node.text("name", config.node_name).word<LogLevel>("log-level", config.log_level, levels).finish();
  constexpr std::size_t longest_name = 48;
  if (config.node_name.size() > longest_name) node.refuse("name", "it has more than 48 characters");
}

/// Every name of a sink that is used must be one; and what is not used is mostly a typing error.
void check_names(Source& source, const DaemonConfig& config) {
  std::vector<std::string_view> names;
  for (const SinkConfig& sink : config.sinks) names.push_back(sink.name);
  const auto check = [&](const Section& section, std::string_view option, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    const std::string nearest = sinks::nearest_name(name, names);
    section.refuse(
        option, "there is no sink '" + name + "'",
        nearest.empty() ? "describe it below [sinks." + name + "]" : "did you mean " + nearest + "?");
  };
  for (const TopicConfig& topic : config.relay.topics) {
    const Section section(source, "relay.topics." + topic.topic.name);
    std::set<std::string_view> seen;
    for (const std::string& name : topic.publishers) {
      if (!seen.insert(name).second) section.refuse("publishers", "'" + name + "' stands there twice");
      if (!sinks::is_built_in_publisher(name)) check(section, "publishers", name);
    }
  }
  for (std::size_t i = 0; i < config.outbox.routes.size(); ++i) {
    const std::string& sink = config.outbox.routes[i].sink;
    if (!sink.empty()) check(Section(source, "outbox.routes[" + std::to_string(i) + "]"), "sink", sink);
  }
}

/// Where the sinks stand, for what they refuse when they are made.
void place_sinks(const Source& source, const ReadConfig& read, std::vector<SinkConfig>& sinks) {
  for (SinkConfig& sink : sinks) {
    const std::string table = "sinks." + sink.name;
    for (const ConfigTable& one : source.file().tables()) {
      if (one.name == table) sink.where = source.file().name() + ", line " + std::to_string(one.line);
    }
    for (const Effective& one : read.effective) {
      if (one.table == table && !one.where.empty()) sink.places.emplace(one.name, one.where);
    }
  }
}

ReadConfig read_all(Source source) {
  ReadConfig result;
  DaemonConfig& config = result.config;
  read_storage(source, config.storage);
  read_server(source, config.server);
  for (const std::string& name : source.tables_below("sinks")) {
    config.sinks.push_back(sinks::read_sink(source, name));
  }
  read_relay(source, config.relay);
  read_outbox(source, config.outbox);
  read_others(source, config);
  check_names(source, config);
  source.finish();
  result.effective = source.effective();
  for (const Effective& one : result.effective) {
    if (!one.where.empty()) config.places.emplace(one.table + "." + one.name, one.where);
  }
  place_sinks(source, result, config.sinks);
  return result;
}

}  // namespace

bool RouteConfig::matches(const Event& event) const {
  return (type.empty() || type == event.type()) &&
         (aggregate.empty() || aggregate == event.aggregate_type()) &&
         (tenant.empty() || tenant == event.tenant_id());
}

ReadConfig read_daemon_config(const std::string& path, const char* const* environment) {
  return read_all(Source(ConfigFile::read(path), environment));
}

ReadConfig parse_daemon_config(std::string_view text, const std::string& name,
                               const char* const* environment) {
  return read_all(Source(ConfigFile::parse(text, name), environment));
}

DaemonConfig read_config_of(std::string table, const std::string& path) {
  Source source(ConfigFile::read(path), nullptr);
  source.resolve_only(std::move(table));
  return read_all(std::move(source)).config;
}

DaemonConfig parse_config_of(std::string table, std::string_view text, const std::string& name,
                             const char* const* environment) {
  Source source(ConfigFile::parse(text, name), environment);
  source.resolve_only(std::move(table));
  return read_all(std::move(source)).config;
}

void refuse_all(std::span<const Error> errors) {
  throw_all("the configuration is refused", errors);
}

std::vector<std::string> changed_options(const std::vector<Effective>& before,
                                         const std::vector<Effective>& after) {
  std::map<std::string, std::size_t> values;
  std::set<std::string> changed;
  for (const Effective& one : before) values[one.table + "." + one.name] = one.fingerprint;
  for (const Effective& one : after) {
    const std::string name = one.table + "." + one.name;
    const auto found = values.find(name);
    if (found == values.end() || found->second != one.fingerprint) changed.insert(name);
    if (found != values.end()) values.erase(found);
  }
  for (const auto& [name, value] : values) changed.insert(name);  // those that are gone
  return {changed.begin(), changed.end()};
}

std::string print_config(const std::vector<Effective>& effective) {
  std::string out;
  std::string table;
  for (const Effective& one : effective) {
    if (one.table != table) {
      table = one.table;
      const std::size_t bracket = table.find('[');
      if (!out.empty()) out += '\n';
      out += bracket == std::string::npos ? "[" + table + "]\n" : "[[" + table.substr(0, bracket) + "]]\n";
    }
    const bool plain = std::all_of(one.name.begin(), one.name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
             c == '_';
    });
    out += (plain ? one.name : "\"" + one.name + "\"") + " = " + one.value;
    if (one.origin == Effective::Origin::standard) out += "  # default";
    if (one.origin == Effective::Origin::environment) out += "  # from the environment";
    out += '\n';
  }
  return out;
}

}  // namespace postrider::config
