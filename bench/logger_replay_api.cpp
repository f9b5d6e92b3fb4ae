// SPDX-License-Identifier: Apache-2.0
#include "logger.hpp"

#if !defined(POSTRIDER_BENCH_PROGRAM) || !defined(POSTRIDER_BENCH_HTTP)

namespace postrider::bench {
void logger_replay_api(Report& /*report*/, const std::string& line) {
  throw Unavailable(line + " needs the program and libcurl");
}
}  // namespace postrider::bench

#else

#include <filesystem>
#include <memory>
#include <thread>

#include "app/api/event_log_api.hpp"
#include "app/http/server.hpp"
#include "bare_http_connection.hpp"
#include "logger/spill_reader.hpp"
#include "logger_common.hpp"
#include "postrider/async_logger.hpp"
#include "postrider/http_event_log_client.hpp"
#include "sandbox.hpp"

namespace postrider::bench {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t events = 150'000;
constexpr std::size_t per_batch = 500;

LoggerOptions logger_options(const std::string& folder) {
  LoggerOptions options;
  options.spillover_path = folder;
  options.max_spillover_events = 2 * events;
  options.max_spillover_bytes = 1U << 30U;
  options.replay_batch_size = per_batch;
  options.replay_interval = std::chrono::hours{1};  // when it is told to
  options.full_policy = FullPolicy::block;
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

/// The receiver of an outage.
class DownClient final : public EventLogClient {
 public:
  [[nodiscard]] SendResult send(std::span<const OutgoingEvent>) override {
    return {.verdict = SendVerdict::transient, .status = 503, .reason = "down"};
  }
};

/// What an outage leaves behind: spill files, written by the logger itself.
void spill(const std::string& folder) {
  LoggerOptions options = logger_options(folder);
  options.max_retries = 0;
  AsyncEventLogger logger(std::make_shared<DownClient>(), options);
  EventLogEntry entry = seed_entry();
  for (std::size_t i = 0; i < events; ++i) logger.log(entry);
  if (!logger.flush(60s) || logger.stats().on_disk != events) {
    throw std::runtime_error("logger.replay_api: cannot make the spill files");
  }
}

/// The same events as requests, ready to be sent.
std::vector<std::string> requests_of(const std::string& folder) {
  const auto files = logger::open_spill_folder(folder);
  logger::SpillStore store(*files, {.max_events = 2 * events, .max_bytes = 1U << 30U},
                           [](LogLevel, std::string_view) {});
  logger::SpillReader reader(store);
  logger::SpillBatch batch;
  std::vector<std::string> requests;
  while (reader.read(batch, per_batch, 1U << 20U)) {
    std::string body = "[";
    for (const logger::SpillBatch::Item& item : batch.items) {
      body.append(body.size() > 1 ? ",{" : "{").append(item.members).append("}");
    }
    requests.push_back(HttpConnection::batch_request(body + "]"));
    reader.commit(batch, batch.items.size());
  }
  return requests;
}

/// The API on a fresh database, in this process.
class Api {
 public:
  Api() : sandbox_(BackendKind::sqlite, "bench_replay"), api_(sandbox_.storage(), {}) {
    http::Router router;
    api_.add_routes(router);
    server_ = std::make_unique<http::Server>(std::move(router), http::ServerOptions{});
    server_->start();
  }
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  void expect_all_stored() {
    server_->stop(5s);
    api_.stop();
    if (sandbox_.number("SELECT count(*) FROM " + sandbox_.table("event_log_entries")) !=
        static_cast<std::int64_t>(events)) {
      throw std::runtime_error("logger.replay_api: events are missing");
    }
  }

 private:
  Sandbox sandbox_;
  api::EventLogApi api_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace

void logger_replay_api(Report& report, const std::string& line) {
  const std::string folder = scratch_folder("logger-replay-api");
  const std::string source = folder + "/source";
  const std::string copy = folder + "/copy";
  spill(source);
  const auto fresh_copy = [&] {
    std::filesystem::remove_all(copy);
    std::filesystem::copy(source, copy);
  };
  fresh_copy();
  const std::vector<std::string> requests = requests_of(copy);

  const auto ours = [&] {
    fresh_copy();
    Api api;
    HttpClientOptions client;
    client.base_url = "http://127.0.0.1:" + std::to_string(api.port());
    AsyncEventLogger logger(std::make_shared<HttpEventLogClient>(client), logger_options(copy));
    const Stopwatch watch;
    logger.replay_soon();
    while (logger.stats().replayed < events) {
      if (watch.seconds() > 60) throw std::runtime_error("logger.replay_api: the replay does not end");
      std::this_thread::sleep_for(1ms);
    }
    const double seconds = watch.seconds();
    logger.shutdown();
    api.expect_all_stored();
    return static_cast<double>(events) / seconds;
  };
  const auto bare = [&] {
    Api api;
    HttpConnection connection(api.port());
    const Stopwatch watch;
    for (const std::string& request : requests) connection.post(request);
    const double seconds = watch.seconds();
    api.expect_all_stored();
    return static_cast<double>(events) / seconds;
  };
  const Medians medians = interleave(line, default_rounds, ours, bare);
  report.print({line,
                medians.ours,
                "events/s",
                "bare-http-client",
                medians.bare,
                Target::at_least(0.80),
                {{"rounds", double{default_rounds}}, {"spread", medians.spread}}});
  std::filesystem::remove_all(folder);
}

}  // namespace postrider::bench

#endif
