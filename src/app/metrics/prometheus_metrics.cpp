// SPDX-License-Identifier: Apache-2.0
#include "app/metrics/prometheus_metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <map>
#include <utility>

namespace postrider::metrics {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Registry;

const Histogram::BucketBoundaries times{0.000'1, 0.000'5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10};
const Histogram::BucketBoundaries sizes{1, 2, 5, 10, 50, 100, 500, 1'000, 5'000};

Counter& counter(Registry& registry, const char* name, const char* help,
                 const prometheus::Labels& labels = {}) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
}
Gauge& gauge(Registry& registry, const char* name, const char* help, const prometheus::Labels& labels = {}) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
}
Histogram& histogram(Registry& registry, const char* name, const char* help,
                     const Histogram::BucketBoundaries& steps, const prometheus::Labels& labels = {}) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels, steps);
}

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

namespace {

struct PairGauges {
  Gauge* lag_events;
  Gauge* lag_seconds;
  Gauge* active;
  Gauge* dead;
};

}  // namespace

struct PrometheusMetrics::Families {
  Registry registry;

  Counter& hot_enqueued = counter(registry, "postrider_outbox_enqueued_total",
                                  "Events of the outbox that were queued on this node", {{"path", "hot"}});
  Counter& cold_enqueued = counter(registry, "postrider_outbox_enqueued_total",
                                   "Events of the outbox that were queued on this node", {{"path", "cold"}});
  Counter& hot_dropped = counter(registry, "postrider_outbox_hot_dropped_total",
                                 "Events that found the hot queue full and were left to the poller");
  Counter& success = counter(registry, "postrider_outbox_dispatched_total",
                             "Attempts to deliver events of the outbox", {{"result", "success"}});
  Counter& failure = counter(registry, "postrider_outbox_dispatched_total",
                             "Attempts to deliver events of the outbox", {{"result", "failure"}});
  Counter& dead =
      counter(registry, "postrider_outbox_dead_total", "Events of the outbox that became dead letters");
  Counter& stale = counter(registry, "postrider_outbox_stale_completions_total",
                           "Results that came after the event's lease had gone to another node");
  Counter& flush_failures =
      counter(registry, "postrider_outbox_flush_failures_total", "Failed writes of results");
  Counter& poll_failures =
      counter(registry, "postrider_outbox_poll_failures_total", "Failed looks into the outbox");
  Gauge& hot_depth =
      gauge(registry, "postrider_outbox_queue_depth", "Events in this node's queues", {{"path", "hot"}});
  Gauge& cold_depth =
      gauge(registry, "postrider_outbox_queue_depth", "Events in this node's queues", {{"path", "cold"}});
  Gauge& lag =
      gauge(registry, "postrider_outbox_lag_seconds", "Age of the oldest event that this node's poller saw");
  Gauge& in_flight = gauge(registry, "postrider_outbox_in_flight", "Events that this node is delivering");
  Histogram& queue_wait = histogram(registry, "postrider_outbox_queue_wait_seconds",
                                    "From the queue to the first listener", times);
  Histogram& listener_time =
      histogram(registry, "postrider_outbox_delivery_seconds", "All listeners of one event", times);
  Histogram& flush_time =
      histogram(registry, "postrider_outbox_flush_seconds", "One write of results", times);
  Histogram& flush_size = histogram(registry, "postrider_outbox_flush_events", "Results in one write", sizes);
  Histogram& claim_time =
      histogram(registry, "postrider_outbox_claim_seconds", "One claim of the poller", times);
  Histogram& claim_size = histogram(registry, "postrider_outbox_claim_events", "Events in one claim", sizes);
  Gauge& outbox_pending =
      gauge(registry, "postrider_outbox_events", "Rows of the outbox", {{"status", "pending"}});
  Gauge& outbox_retrying =
      gauge(registry, "postrider_outbox_events", "Rows of the outbox", {{"status", "retrying"}});
  Gauge& outbox_dead = gauge(registry, "postrider_outbox_events", "Rows of the outbox", {{"status", "dead"}});
  Gauge& outbox_oldest =
      gauge(registry, "postrider_outbox_oldest_pending_seconds",
            "For how long the oldest pending event is overdue; 0 while all wait for a retry");
  Gauge& outbox_undelivered =
      gauge(registry, "postrider_outbox_oldest_undelivered_seconds",
            "How long the oldest pending event waits, since its publication when it is being retried");

  Gauge& queue_pending =
      gauge(registry, "postrider_queue_events", "Events in the queue", {{"status", "pending"}});
  Gauge& queue_delayed =
      gauge(registry, "postrider_queue_events", "Events in the queue", {{"status", "delayed"}});
  Gauge& queue_processing =
      gauge(registry, "postrider_queue_events", "Events in the queue", {{"status", "processing"}});
  Gauge& queue_abandoned =
      gauge(registry, "postrider_queue_events", "Events in the queue", {{"status", "abandoned"}});
  Gauge& queue_quarantined =
      gauge(registry, "postrider_queue_events", "Events in the queue", {{"status", "quarantined"}});
  Gauge& queue_oldest = gauge(registry, "postrider_queue_oldest_pending_seconds",
                              "For how long the oldest pending event is due");

  Counter& appended =
      counter(registry, "postrider_store_appended_total", "Events appended through this node");
  Counter& conflicts =
      counter(registry, "postrider_store_conflicts_total", "Appends whose condition did not hold");
  Histogram& append_time =
      histogram(registry, "postrider_store_flush_seconds", "One transaction of appends", times);
  Histogram& append_size =
      histogram(registry, "postrider_store_flush_appends", "Appends in one transaction", sizes);
  Histogram& store_read_time =
      histogram(registry, "postrider_store_read_seconds", "One read, other than the relay's", times);
  Histogram& store_read_size =
      histogram(registry, "postrider_store_read_events", "Events of one read, other than the relay's", sizes);

  Counter& published =
      counter(registry, "postrider_relay_published_total", "Events that publishers have taken");
  Counter& relay_failures =
      counter(registry, "postrider_relay_failures_total", "Batches that were not, or not wholly, taken");
  Counter& relay_dead =
      counter(registry, "postrider_relay_dead_letters_total", "Events given up by their pairs");
  Counter& relay_refused = counter(registry, "postrider_relay_refused_writes_total",
                                   "Progress that came after another node had taken the pair");
  Counter& leader_changes = counter(registry, "postrider_relay_leader_changes_total",
                                    "Times that this node began or ceased to lead");
  Gauge& led = gauge(registry, "postrider_relay_led_pairs", "Pairs that this node leads");
  Histogram& read_tail =
      histogram(registry, "postrider_relay_read_seconds", "One read of the store", times, {{"by", "tail"}});
  Histogram& read_own =
      histogram(registry, "postrider_relay_read_seconds", "One read of the store", times, {{"by", "pair"}});
  Histogram& publish_time =
      histogram(registry, "postrider_relay_publish_seconds", "One batch with its publisher", times);
  Histogram& publish_size =
      histogram(registry, "postrider_relay_publish_events", "Events in one batch", sizes);

  prometheus::Family<Gauge>& pair_lag_events = prometheus::BuildGauge()
                                                   .Name("postrider_relay_lag_events")
                                                   .Help("Positions that a pair has still to look at")
                                                   .Register(registry);
  prometheus::Family<Gauge>& pair_lag_seconds = prometheus::BuildGauge()
                                                    .Name("postrider_relay_lag_seconds")
                                                    .Help("For how long a pair's next event waits")
                                                    .Register(registry);
  prometheus::Family<Gauge>& pair_active =
      prometheus::BuildGauge()
          .Name("postrider_relay_pair_active")
          .Help("1 while a pair is ACTIVE, 0 when it is PAUSED or FAILED")
          .Register(registry);
  prometheus::Family<Gauge>& pair_dead = prometheus::BuildGauge()
                                             .Name("postrider_relay_pair_dead_letters")
                                             .Help("Dead letters of a pair")
                                             .Register(registry);
  std::map<PairName, PairGauges> pairs{};
  prometheus::Family<Gauge>& sink_up =
      prometheus::BuildGauge()
          .Name("postrider_sink_up")
          .Help("0 when a sink's receiver was away when this node last sent to it, or wants no events")
          .Register(registry);
  prometheus::Family<Gauge>& sink_circuit_open =
      prometheus::BuildGauge()
          .Name("postrider_sink_circuit_open")
          .Help("1 while a sink is left alone after repeated failures")
          .Register(registry);
  prometheus::Family<Counter>& sink_failures =
      prometheus::BuildCounter()
          .Name("postrider_sink_failures_total")
          .Help("Times that a sink's receiver was away when this node sent to it")
          .Register(registry);
  Counter& removed_outbox =
      counter(registry, "postrider_maintenance_removed_total",
              "Rows that were removed because they are old or done with", {{"table", "outbox"}});
  Counter& removed_queue_log =
      counter(registry, "postrider_maintenance_removed_total",
              "Rows that were removed because they are old or done with", {{"table", "queue_log"}});
  Counter& removed_handler_states =
      counter(registry, "postrider_maintenance_removed_total",
              "Rows that were removed because they are old or done with", {{"table", "handler_states"}});
  Counter& maintenance_failures = counter(registry, "postrider_maintenance_failures_total",
                                          "Rounds of maintenance that the database has failed");
  Gauge& database = gauge(registry, "postrider_database_up", "1 when the database answers");
};

PrometheusMetrics::PrometheusMetrics() : families_(std::make_unique<Families>()) {}
PrometheusMetrics::~PrometheusMetrics() = default;

std::string PrometheusMetrics::text() const {
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

void PrometheusMetrics::increment_hot_enqueued() {
  families_->hot_enqueued.Increment();
}
void PrometheusMetrics::increment_hot_dropped() {
  families_->hot_dropped.Increment();
}
void PrometheusMetrics::increment_cold_enqueued() {
  families_->cold_enqueued.Increment();
}
void PrometheusMetrics::increment_dispatch_success() {
  families_->success.Increment();
}
void PrometheusMetrics::increment_dispatch_failure() {
  families_->failure.Increment();
}
void PrometheusMetrics::increment_dispatch_dead() {
  families_->dead.Increment();
}
void PrometheusMetrics::increment_stale_completions(std::size_t events) {
  families_->stale.Increment(static_cast<double>(events));
}
void PrometheusMetrics::increment_flush_failures() {
  families_->flush_failures.Increment();
}
std::uint64_t PrometheusMetrics::failed_writes() const {
  return static_cast<std::uint64_t>(families_->flush_failures.Value() + families_->poll_failures.Value() +
                                    families_->maintenance_failures.Value());
}
void PrometheusMetrics::increment_poll_failures() {
  families_->poll_failures.Increment();
}
void PrometheusMetrics::record_queue_depths(std::size_t hot, std::size_t cold) {
  families_->hot_depth.Set(static_cast<double>(hot));
  families_->cold_depth.Set(static_cast<double>(cold));
}
void PrometheusMetrics::record_oldest_lag(Duration lag) {
  families_->lag.Set(seconds(lag));
}
void PrometheusMetrics::record_in_flight(std::size_t events) {
  families_->in_flight.Set(static_cast<double>(events));
}
void PrometheusMetrics::observe_queue_wait(Duration time) {
  families_->queue_wait.Observe(seconds(time));
}
void PrometheusMetrics::observe_listener_time(Duration time) {
  families_->listener_time.Observe(seconds(time));
}
void PrometheusMetrics::observe_flush(std::size_t events, Duration time) {
  families_->flush_time.Observe(seconds(time));
  families_->flush_size.Observe(static_cast<double>(events));
}
void PrometheusMetrics::observe_claim(std::size_t events, Duration time) {
  families_->claim_time.Observe(seconds(time));
  families_->claim_size.Observe(static_cast<double>(events));
}

void PrometheusMetrics::increment_stream_appended(std::size_t events) {
  families_->appended.Increment(static_cast<double>(events));
}
void PrometheusMetrics::increment_stream_conflicts() {
  families_->conflicts.Increment();
}
void PrometheusMetrics::observe_stream_flush(std::size_t appends, Duration time) {
  families_->append_time.Observe(seconds(time));
  families_->append_size.Observe(static_cast<double>(appends));
}

void PrometheusMetrics::observe_stream_read(std::size_t events, Duration time) {
  families_->store_read_time.Observe(seconds(time));
  families_->store_read_size.Observe(static_cast<double>(events));
}

void PrometheusMetrics::increment_relay_published(std::size_t events) {
  families_->published.Increment(static_cast<double>(events));
}
void PrometheusMetrics::increment_relay_failures() {
  families_->relay_failures.Increment();
}
void PrometheusMetrics::increment_relay_dead_letters() {
  families_->relay_dead.Increment();
}
void PrometheusMetrics::increment_relay_refused_writes(std::size_t pairs) {
  families_->relay_refused.Increment(static_cast<double>(pairs));
}
void PrometheusMetrics::increment_relay_leader_changes() {
  families_->leader_changes.Increment();
}
void PrometheusMetrics::record_relay_led(std::size_t pairs) {
  families_->led.Set(static_cast<double>(pairs));
}
void PrometheusMetrics::observe_relay_read(std::size_t /*events*/, bool tail, Duration time) {
  (tail ? families_->read_tail : families_->read_own).Observe(seconds(time));
}
void PrometheusMetrics::observe_relay_publish(std::size_t events, Duration time) {
  families_->publish_time.Observe(seconds(time));
  families_->publish_size.Observe(static_cast<double>(events));
}

void PrometheusMetrics::record_outbox(const OutboxCounts& counts) {
  families_->outbox_pending.Set(static_cast<double>(counts.pending - counts.retrying));
  families_->outbox_retrying.Set(static_cast<double>(counts.retrying));
  families_->outbox_dead.Set(static_cast<double>(counts.dead));
  families_->outbox_oldest.Set(seconds(counts.oldest_pending));
  families_->outbox_undelivered.Set(seconds(counts.oldest_undelivered));
}
void PrometheusMetrics::record_queue(std::int64_t pending, std::int64_t delayed, std::int64_t processing,
                                     std::int64_t abandoned, std::int64_t quarantined, Duration oldest) {
  families_->queue_pending.Set(static_cast<double>(pending));
  families_->queue_delayed.Set(static_cast<double>(delayed));
  families_->queue_processing.Set(static_cast<double>(processing - abandoned));
  families_->queue_abandoned.Set(static_cast<double>(abandoned));
  families_->queue_quarantined.Set(static_cast<double>(quarantined));
  families_->queue_oldest.Set(seconds(oldest));
}
void PrometheusMetrics::record_pairs(std::span<const PairStatus> pairs) {
  Families& all = *families_;
  const MutexLock lock(pairs_);
  std::map<PairName, PairGauges> gone = std::exchange(all.pairs, {});
  for (const PairStatus& pair : pairs) {
    auto node = gone.extract(pair.name);
    if (node.empty()) {
      const prometheus::Labels labels{{"topic", pair.name.topic}, {"publisher", pair.name.publisher}};
      all.pairs.emplace(pair.name,
                        PairGauges{&all.pair_lag_events.Add(labels), &all.pair_lag_seconds.Add(labels),
                                   &all.pair_active.Add(labels), &all.pair_dead.Add(labels)});
    } else {
      all.pairs.insert(std::move(node));
    }
    const PairGauges& gauges = all.pairs.at(pair.name);
    gauges.lag_events->Set(static_cast<double>(pair.lag_events));
    gauges.lag_seconds->Set(seconds(pair.lag_time));
    gauges.active->Set(pair.state == PairState::active ? 1 : 0);
    gauges.dead->Set(static_cast<double>(pair.dead_letters));
  }
  for (const auto& [name, gauges] : gone) {
    all.pair_lag_events.Remove(gauges.lag_events);
    all.pair_lag_seconds.Remove(gauges.lag_seconds);
    all.pair_active.Remove(gauges.active);
    all.pair_dead.Remove(gauges.dead);
  }
}
void PrometheusMetrics::record_database(bool reachable) {
  families_->database.Set(reachable ? 1 : 0);
}
void PrometheusMetrics::record_sink(const std::string& name, const std::string& type, bool up,
                                    bool circuit_open, std::uint64_t failures) {
  const prometheus::Labels labels{{"sink", name}, {"type", type}};
  const MutexLock lock(sinks_);
  families_->sink_up.Add(labels).Set(up ? 1 : 0);
  families_->sink_circuit_open.Add(labels).Set(circuit_open ? 1 : 0);
  Counter& counted = families_->sink_failures.Add(labels);
  counted.Increment(static_cast<double>(failures) - counted.Value());  // less than nothing is not counted
}
void PrometheusMetrics::count_removed(const Removed& removed) {
  families_->removed_outbox.Increment(static_cast<double>(removed.outbox));
  families_->removed_queue_log.Increment(static_cast<double>(removed.queue_log));
  families_->removed_handler_states.Increment(static_cast<double>(removed.handler_states));
}
void PrometheusMetrics::count_maintenance_failure() {
  families_->maintenance_failures.Increment();
}

}  // namespace postrider::metrics
