// SPDX-License-Identifier: Apache-2.0
#include "storage/conformance/queue_rows.hpp"

#include "storage/handler_results.hpp"

namespace postrider::conformance {
namespace {

std::string shown(const std::optional<TimePoint>& time) {
  return time.has_value() ? std::to_string(time->time_since_epoch().count()) : "-";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const QueueRow& row) {
  return out << row.id << "/" << row.event_id << " " << row.type << " key=" << row.key
             << " dedupe=" << row.dedupe << " priority=" << row.priority << " " << to_string(row.status)
             << " attempts=" << row.attempts << " crashes=" << row.crashes << " token=" << row.token
             << " available=" << shown(row.available) << " created=" << shown(row.created)
             << " started=" << shown(row.started) << " owner=" << row.owner
             << " lease_until=" << shown(row.lease_until) << " error=" << row.error
             << " quarantined=" << shown(row.quarantined);
}

std::ostream& operator<<(std::ostream& out, const LogRow& row) {
  return out << "#" << row.seq << " " << row.id << "/" << row.event_id << " token=" << row.token
             << " key=" << row.key << " priority=" << row.priority << " " << to_string(row.status)
             << " attempts=" << row.attempts << " crashes=" << row.crashes
             << " created=" << shown(row.created) << " started=" << shown(row.started)
             << " finalized=" << shown(row.finalized) << " results=" << encode_results(row.results);
}

std::ostream& operator<<(std::ostream& out, const StateRow& row) {
  return out << row.id << " " << encode_results({&row.result, 1});
}

}  // namespace postrider::conformance
