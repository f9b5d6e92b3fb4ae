// SPDX-License-Identifier: Apache-2.0
#include "app/demo/backstage.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "app/daemon/dashboard.hpp"
#include "app/demo/book.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/file_sink.hpp"
#include "postrider/open.hpp"
#include "postrider/relay_admin.hpp"

namespace postrider::demo {
namespace {

using namespace std::chrono_literals;

/// Of the orders' numbers: what is in store for them.
constexpr int unknown_address = 100;  // each so many-th is never delivered
constexpr int busy = 10;              // each so many-th is refused once

/// The shop's mails. Refuses some orders once and some for ever; is away when told so.
class MailSink final : public Sink {
 public:
  MailSink(const Place& place, std::shared_ptr<MailServer> server)
      : server_(std::move(server)), mails_(place.mails()) {}

  PublishResult send(std::span<const SinkMessage> messages) override {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (server_->away) {
        ++server_->turned_away;
        return PublishResult::unavailable(i, "the mail server is away");
      }
      const Event& event = *messages[i].event;
      int number = 0;
      const std::string& text = event.aggregate_id();
      std::from_chars(text.data(), text.data() + text.size(), number);
      if (number % unknown_address == 7) return PublishResult::refused(i, "the address does not exist");
      if (number % busy == 0 && first_time(event.id())) {
        ++server_->refused_once;
        return PublishResult::refused(i, "the mail server is busy");
      }
      mails_.note(event.id().view());
      ++server_->delivered;
    }
    return PublishResult::all();
  }
  const std::string& name() const noexcept override { return name_; }

 private:
  bool first_time(const EventId& id) {
    const MutexLock lock(mutex_);
    return seen_.insert(std::string(id.view())).second;
  }

  const std::string name_ = "mail";
  std::shared_ptr<MailServer> server_;
  const Book mails_;
  Mutex mutex_;
  std::set<std::string> seen_ POSTRIDER_GUARDED_BY(mutex_);
};

/// Writes down the position of each event.
class LedgerSink final : public Sink {
 public:
  explicit LedgerSink(const Place& place) : ledger_(place.ledger()) {}
  PublishResult send(std::span<const SinkMessage> messages) override {
    for (const SinkMessage& message : messages) {
      ledger_.note(std::to_string(static_cast<std::int64_t>(message.stored->position())));
    }
    return PublishResult::all();
  }
  const std::string& name() const noexcept override { return name_; }

 private:
  const std::string name_ = "ledger";
  const Book ledger_;
};

class NewsletterSink final : public Sink {
 public:
  explicit NewsletterSink(const Place& place) : jam_(place.paper_jam()) {}
  PublishResult send(std::span<const SinkMessage> /*messages*/) override {
    if (std::filesystem::exists(jam_)) return PublishResult::refused(0, "paper jam");
    return PublishResult::all();
  }
  const std::string& name() const noexcept override { return name_; }

 private:
  const std::string name_ = "newsletter";
  const std::filesystem::path jam_;
};

template <class OneSink, class... Arguments>
config::SinkConfig sink(const char* name, Arguments... arguments) {
  return {.name = name, .type = "demo", .make = [arguments...](const LogCallback&) -> std::shared_ptr<Sink> {
            return std::make_shared<OneSink>(arguments...);
          }};
}

config::TopicConfig topic(const char* name, std::vector<std::string> required_tags,
                          std::vector<std::string> publishers) {
  config::TopicConfig config{.publishers = std::move(publishers)};
  config.topic = {.name = name, .required_tags = std::move(required_tags)};
  // Another process's appends are found by polling on SQLite; nobody likes to watch that.
  config.pair.polling_interval = 50ms;
  config.pair.backoff.max = 200ms;
  config.pair.max_failures = 3;
  return config;
}

/// The same on both nodes, so that either can lead.
config::DaemonConfig relay_config(const Place& place) {
  config::DaemonConfig config;
  config.storage.url = place.url();
  config.server.listen = "127.0.0.1:0";
  config.sinks.push_back(sink<LedgerSink>("ledger", place));
  config.sinks.push_back(sink<NewsletterSink>("newsletter", place));
  config.sinks.push_back({.name = "file", .type = "file", .make = [place](const LogCallback& log) {
                            FileSinkOptions options{.path = (place.folder / "events.jsonl").string()};
                            options.limits.log = log;
                            return file_sink(std::move(options));
                          }});
  config.relay.enabled = true;
  config.relay.options.heartbeat = 200ms;
  config.relay.topics.push_back(topic(wallet_topic, {"wallet_id"}, {"ledger", "newsletter"}));
  config.relay.topics.push_back(topic("all-events", {}, {"file", "StatisticsPublisher"}));
  return config;
}

config::DaemonConfig full_config(const Place& place, const std::string& listen,
                                 const std::shared_ptr<MailServer>& mail_server) {
  config::DaemonConfig config = relay_config(place);
  config.node_name = "demo";
  config.server.listen = listen;
  config.server.drain_timeout = 2s;
  config.sinks.push_back(sink<MailSink>("mail", place, mail_server));
  config.outbox.enabled = true;
  config.outbox.options.poller_interval = 50ms;
  config.outbox.options.retry_base_delay = 50ms;
  config.outbox.options.retry_max_delay = 500ms;
  config.outbox.options.retry_max_attempts = 4;
  config.outbox.routes = {{.type = "OrderPlaced", .sink = "mail"}};
  config.outbox.unrouted_is_dead = false;  // what the audience publishes itself
  config.eventlog.enabled = true;
  for (const std::filesystem::path& folder : {place.spillover(), place.encore_spillover()}) {
    std::filesystem::create_directory(folder);  // so that the dashboard finds it before a logger does
    config.spill.folders.push_back(folder.string());
  }
  return config;
}

/// What the daemon has to say, for whoever keeps the folder: the chapters say the rest.
LogCallback log_to_file(const std::filesystem::path& path) {
  struct Log {
    Mutex mutex;
    std::ofstream file POSTRIDER_GUARDED_BY(mutex);
  };
  const auto log = std::make_shared<Log>();
  {
    const MutexLock lock(log->mutex);
    log->file.open(path, std::ios::app);
  }
  return [log](LogLevel, std::string_view line) {
    const MutexLock lock(log->mutex);
    log->file << line << std::endl;
  };
}

}  // namespace

Backstage::Backstage(const Stage& stage, const std::string& listen) {
  open(stage.place().url())->migrate();
  daemon_ = std::make_unique<daemon::Daemon>(full_config(stage.place(), listen, mail_server_),
                                             log_to_file(stage.place().folder / "daemon.log"));
}

bool Backstage::start(Stage& stage) {
  first_node_.emplace(stage, "relay");
  const std::unique_ptr<Storage> storage = open(stage.place().url());
  const RelayAdmin admin(*storage);
  const bool leads = stage.await([&] { return !admin.leaders().empty() || first_node_->ended(); });
  if (!leads || first_node_->ended()) return false;
  daemon_->start();
  const bool settled = stage.await([&] { return daemon_->ready() || daemon_->failure() != nullptr; });
  if (daemon_->failure() != nullptr) std::rethrow_exception(daemon_->failure());
  return settled;
}

std::string Backstage::dashboard() const {
  return daemon::dashboard_assets().empty() ? daemon_->url() + "/api/overview" : daemon_->url() + "/ui";
}

int run_relay_node(const Place& place) {
  const cli::Interrupts interrupts;
  config::DaemonConfig config = relay_config(place);
  config.node_name = "first-node";
  config.server.management = false;
  config.server.metrics = false;
  daemon::Daemon daemon(std::move(config), log_to_file(place.folder / "first-node.log"));
  daemon.start();
  while (!interrupts.wait_for(500ms)) {
  }
  return daemon.stop() ? 0 : 1;
}

}  // namespace postrider::demo
