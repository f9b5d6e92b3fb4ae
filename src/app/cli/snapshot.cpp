// SPDX-License-Identifier: Apache-2.0
#include "app/cli/snapshot.hpp"

#include <boost/json.hpp>

#include "app/api/counts_json.hpp"
#include "app/api/json_values.hpp"
#include "app/api/record_json.hpp"
#include "app/api/relay_api.hpp"
#include "app/daemon/overview_api.hpp"
#include "postrider/event_log.hpp"
#include "storage/stream_store.hpp"

namespace postrider::cli {

namespace json = boost::json;

Snapshot take_snapshot(const Database& database) {
  Storage& storage = *database.storage;
  Snapshot snapshot{
      .at = Clock::system().now(), .storage = storage.name(), .kind = std::string(to_string(storage.kind()))};
  const MigrationReport schema = storage.migrate({.dry_run = true});
  snapshot.schema_version = schema.from;
  snapshot.schema_needed = schema.to;
  if (!snapshot.schema_fits()) return snapshot;
  snapshot.outbox = OutboxAdmin(storage).counts();
  snapshot.queue = QueueAdmin(storage).counts();
  snapshot.head = storage.stream_store().head();
  snapshot.log_head = EventLog(storage).head();
  const RelayAdmin relay(storage);
  snapshot.pairs = relay.list();
  snapshot.leaders = relay.leaders();
  snapshot.standbys = relay.standbys();
  snapshot.projections = ProjectionAdmin(storage).list();
  const daemon::Figures figures{.at = snapshot.at,
                                .database_up = true,
                                .outbox = snapshot.outbox,
                                .queue = snapshot.queue,
                                .head = snapshot.head,
                                .pairs = snapshot.pairs,
                                .leaders = snapshot.leaders,
                                .blocker = daemon::find_blocker(storage, database.options.schema)};
  snapshot.findings = daemon::diagnose(&figures, {});
  return snapshot;
}

json::object snapshot_json(const Snapshot& snapshot) {
  json::object all{{"at", api::time_text(snapshot.at)},
                   {"storage", snapshot.storage},
                   {"database", snapshot.kind},
                   {"schemaVersion", snapshot.schema_version},
                   {"schemaNeeded", snapshot.schema_needed}};
  if (!snapshot.schema_fits()) return all;
  json::array pairs;
  for (const PairStatus& pair : snapshot.pairs) pairs.push_back(api::pair_json(pair));
  json::array leaders;
  for (const LeaderStatus& leader : snapshot.leaders) leaders.push_back(api::leader_json(leader));
  json::array standbys;
  for (const StandbyStatus& standby : snapshot.standbys) standbys.push_back(api::standby_json(standby));
  json::array projections;
  for (const ProjectionStatus& one : snapshot.projections) projections.push_back(api::projection_json(one));
  all["outbox"] = api::counts_json(snapshot.outbox);
  all["queue"] = api::counts_json(snapshot.queue);
  all["store"] = json::object{{"head", static_cast<std::int64_t>(snapshot.head)}};
  all["log"] = json::object{{"head", static_cast<std::int64_t>(snapshot.log_head)}};
  all["pairs"] = std::move(pairs);
  all["leaders"] = std::move(leaders);
  all["standbys"] = std::move(standbys);
  all["projections"] = std::move(projections);
  all["stuck"] = api::shown(daemon::stuck_line(snapshot.findings));
  all["findings"] = daemon::findings_json(snapshot.findings);
  return all;
}

}  // namespace postrider::cli
