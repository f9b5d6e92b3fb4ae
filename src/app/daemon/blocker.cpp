// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/blocker.hpp"

#include "storage/sql_query.hpp"

namespace postrider::daemon {

std::optional<Blocker> find_blocker(Storage& storage, const Identifier& schema) {
  if (storage.kind() != BackendKind::postgres) return std::nullopt;
  Transaction tx = storage.begin();
  const Rows rows = tx.execute(
      "select b.pid, coalesce(b.application_name, ''), coalesce(b.state, ''), "
      "coalesce((extract(epoch from clock_timestamp() - b.xact_start) * 1000000)::bigint, 0), count(*) "
      "from pg_stat_activity w cross join lateral unnest(pg_blocking_pids(w.pid)) as p(pid) "
      "join pg_stat_activity b on b.pid = p.pid "
      "where w.datname = current_database() and w.wait_event_type = 'Lock' "
      "and w.query_start < clock_timestamp() - interval '1 second' "
      // Not those in the middle of a line: the one at its head.
      "and b.wait_event_type is distinct from 'Lock' "
      "and exists (select 1 from pg_locks l join pg_class c on c.oid = l.relation "
      "where l.pid in (w.pid, b.pid) and l.database = w.datid and c.relnamespace = to_regnamespace(?)) "
      "group by 1, 2, 3, 4, b.xact_start order by b.xact_start nulls last limit 1",
      schema.str());
  tx.commit();
  if (rows.empty()) return std::nullopt;
  const auto& row = rows.rows.front();
  return Blocker{.pid = number(row[0]),
                 .application = text(row[1]),
                 .state = text(row[2]),
                 .open_for = Duration{number(row[3])},
                 .waiting = number(row[4])};
}

}  // namespace postrider::daemon
