// SPDX-License-Identifier: Apache-2.0
#include "app/cli/verify_checks.hpp"

#include <algorithm>
#include <iterator>

#include "postrider/event_log.hpp"
#include "postrider/event_store.hpp"
#include "storage/sql_query.hpp"
#include "storage/stream_keys.hpp"

namespace postrider::cli {
namespace {

constexpr std::size_t examples = 3;

/// "{name}" is a table, "{us:column}" a time in microseconds, "{now}" the database's now in microseconds,
/// "{true}" a flag that is set.
std::string filled(const Inspector& inspector, std::string_view sql) {
  std::string out;
  for (;;) {
    const std::size_t open = sql.find('{');
    out.append(sql.substr(0, open));
    if (open == std::string_view::npos) return out;
    const std::size_t close = sql.find('}', open);
    const std::string_view word = sql.substr(open + 1, close - open - 1);
    if (word == "true") {
      out += inspector.kind() == BackendKind::postgres ? "true" : "1";
    } else if (word == "now") {
      out += inspector.now_micros();
    } else if (word.starts_with("us:")) {
      out += inspector.micros(word.substr(3));
    } else {
      out += inspector.table(word);
    }
    sql.remove_prefix(close + 1);
  }
}

/// Of rows that must not be there: how many (counted up to a bound), and a few by name.
Check no_rows(std::string name, std::string invariant, std::string holds, std::string key, std::string from,
              std::string mend) {
  return {.name = std::move(name),
          .invariant = std::move(invariant),
          .holds = std::move(holds),
          .mend = std::move(mend),
          .violation = [key = std::move(key), from = std::move(from)](Inspector& inspector) {
            constexpr std::size_t most = 1000;
            const Rows rows = inspector.select(
                filled(inspector, "select " + key + " from " + from + " limit " + std::to_string(most)));
            if (rows.empty()) return std::string();
            std::string found =
                (rows.size() == most ? "at least " : "") + std::to_string(rows.size()) + " rows:";
            for (std::size_t i = 0; i < std::min(rows.size(), examples); ++i) {
              found += (i == 0 ? " " : ", ") + rows.rows[i].front().value_or("-");
            }
            return found + (rows.size() > examples ? " …" : "");
          }};
}

/// Two numbers of which the first must not be above the second.
Check not_above(std::string name, std::string invariant, std::string holds, std::string first,
                std::string second, std::string mend) {
  return {.name = std::move(name),
          .invariant = std::move(invariant),
          .holds = std::move(holds),
          .mend = std::move(mend),
          .violation = [first = std::move(first), second = std::move(second)](Inspector& inspector) {
            // One statement: one moment.
            const Rows rows = inspector.select(
                filled(inspector, "select coalesce(" + first + ", 0), coalesce(" + second + ", 0)"));
            const std::int64_t left = number(rows.rows.at(0).at(0));
            const std::int64_t right = number(rows.rows.at(0).at(1));
            return left <= right ? std::string()
                                 : std::to_string(left) + " is above " + std::to_string(right);
          }};
}

constexpr const char* by_hand =
    "somebody has written to the table by hand: look at these rows, and mend them";

/// All that was published, and not removed since, is done, pending, in flight or dead.
Check outbox_balance() {
  return {.name = "outbox.balance",
          .invariant = "H",
          .holds = "published = done + pending + in flight + dead",
          .mend = by_hand,
          .violation = [](Inspector& inspector) {
            const Rows rows =
                inspector.select(filled(inspector,
                                        "select count(*), coalesce(sum(case when status = 1 then 1 else 0 "
                                        "end), 0), coalesce(sum(case when "
                                        "status in (0, 2) and owner is null then 1 else 0 end), 0), "
                                        "coalesce(sum(case when status in (0, 2) and "
                                        "owner is not null then 1 else 0 end), 0), coalesce(sum(case when "
                                        "status = 3 then 1 else 0 end), 0) "
                                        "from {outbox_event}"));
            const auto at = [&](std::size_t i) { return number(rows.rows.at(0).at(i)); };
            if (at(0) == at(1) + at(2) + at(3) + at(4)) return std::string();
            return std::to_string(at(0)) + " published, " + std::to_string(at(1)) + " done, " +
                   std::to_string(at(2)) + " pending, " + std::to_string(at(3)) + " in flight, " +
                   std::to_string(at(4)) + " dead";
          }};
}

/// Only what somebody has deleted by hand is missing; their order is what is promised.
Check store_gaps() {
  return {
      .name = "store.gaps",
      .invariant = "E",
      .holds = "no position is missing",
      .mend = {},
      .violation =
          [](Inspector& inspector) {
            const std::int64_t missing = inspector.number(filled(
                inspector, "select coalesce(max(position) - min(position) + 1 - count(*), 0) from {events}"));
            return missing == 0
                       ? std::string()
                       : std::to_string(missing) + " positions are missing: events were deleted by hand";
          },
      .note_only = true};
}

/// Events that were finished in transactions of users get their numbers a moment later.
Check log_unnumbered() {
  Check check = no_rows("log.unnumbered", "E", "what is finished has its number in the log", "id",
                        "{event_log} where seq is null and {us:finalized_at} < {now} - 300000000",
                        "no worker runs that would give them: projections wait for it");
  check.note_only = true;
  return check;
}

std::vector<Check> outbox_checks() {
  return {
      outbox_balance(),
      no_rows("outbox.finished", "H", "what is done or dead says when, and what is pending does not",
              "event_id", "{outbox_event} where (status in (1, 3)) <> (done_at is not null)", by_hand),
      no_rows("outbox.leased-and-done", "H", "nobody holds what is finished", "event_id",
              "{outbox_event} where status in (1, 3) and owner is not null", by_hand),
      no_rows("outbox.findable", "A", "what is pending is found when it is due", "event_id",
              "{outbox_event} where status in (0, 2) and due_at is null", by_hand),
      no_rows(
          "outbox.lease", "A", "no lease hides an event for a day", "event_id",
          "{outbox_event} where status in (0, 2) and lease_until is not null and {us:lease_until} > {now} + "
          "86400000000",
          "a clock was wrong when it was taken: postrider doctor; update the row's lease_until to null"),
      no_rows("outbox.ids", "C", "no id twice", "event_id",
              "{outbox_event} group by event_id having count(*) > 1", "the index is damaged: rebuild it"),
  };
}

/// The last number of the log that was given. The log itself may be empty: old entries are removed.
std::string log_end(const Inspector& inspector) {
  switch (inspector.kind()) {
    case BackendKind::postgres:
      return "pg_sequence_last_value('" + inspector.table("event_log_numbers") + "'::regclass)";
    case BackendKind::sqlite:
      return "(select seq from sqlite_sequence where name = '" + inspector.table("event_log") + "')";
    case BackendKind::mariadb:
      break;
  }
  return "(select max(last) from " + inspector.table("event_log_head") + ")";
}

std::vector<Check> queue_checks(const Inspector& inspector) {
  return {
      no_rows("queue.once", "H", "what is finished is out of the queue", "q.id",
              "{event_queue} q join {event_log} l on l.id = q.id", by_hand),
      no_rows("queue.claims", "H", "what is in progress has a worker and a lease", "id",
              "{event_queue} where status = 1 and (owner is null or lease_until is null)", by_hand),
      no_rows("queue.free", "H", "what is pending has no worker", "id",
              "{event_queue} where status = 0 and owner is not null", by_hand),
      no_rows(
          "queue.order", "D", "events of a key are with one worker", "ordering_key",
          "{event_queue} where status = 1 and ordering_key is not null and {us:lease_until} > {now} group by "
          "ordering_key having count(distinct owner) > 1",
          "stop one of the workers, then: postrider queue requeue --id ID"),
      no_rows("log.ids", "C", "no event of the queue is finished twice", "id",
              "{event_log} group by id having count(*) > 1", "the index is damaged: rebuild it"),
      no_rows("log.numbers", "E", "no number of the log twice", "seq",
              "{event_log} where seq is not null group by seq having count(*) > 1",
              "the index is damaged: rebuild it"),
      not_above("projections.position", "E", "no projection is beyond the end of the log",
                "(select max(position) from {event_projection})", log_end(inspector),
                "the log was restored from an older backup, or emptied: rebuild the projection"),
      no_rows("projections.live", "F", "one version of a projection is live at most", "name",
              "{event_projection} where live = {true} group by name having count(*) > 1",
              "its program makes one live (ProjectionAdmin::switch_to)"),
  };
}

std::vector<Check> relay_checks() {
  return {
      not_above("relay.position", "E", "no pair is beyond the end of the store",
                "(select max(last_position) from {outbox_topic_progress})",
                "(select max(position) from {events})",
                "the store was restored from an older backup: postrider topics rewind --topic NAME "
                "--publisher NAME --to POSITION"),
      no_rows("relay.epochs", "F", "epochs are not negative", "topic",
              "{outbox_topic_progress} where epoch < 0", by_hand),
      no_rows("store.positions", "E", "positions begin at 1 or later", "position",
              "{events} where position < 1", by_hand),
  };
}

/// What the next numbers come from must be beyond those that were given.
std::vector<Check> number_checks(const Inspector& inspector) {
  const char* const mend = "restored without its sequences? Set them beyond what the tables have";
  std::vector<Check> checks{not_above("log.next-number", "E", "numbers of the log are not given again",
                                      "(select max(seq) from {event_log})", log_end(inspector), mend)};
  const std::string table = inspector.table("event_queue");
  const std::string given =
      "(select max(id) from (select max(id) as id from {event_queue} union all select max(id) from "
      "{event_log}) "
      "as g)";
  const auto add = [&](const std::string& last) {
    checks.push_back(
        not_above("queue.next-id", "C", "ids of the queue are not given again", given, last, mend));
    checks.push_back(not_above("queue.balance", "H", "no more events are there than were published",
                               "(select count(*) from {event_queue}) + (select count(*) from {event_log})",
                               last, by_hand));
  };
  if (inspector.kind() == BackendKind::postgres) {
    add("pg_sequence_last_value(pg_get_serial_sequence('" + table + "', 'id')::regclass)");
  } else if (inspector.kind() == BackendKind::sqlite) {
    add("(select seq from sqlite_sequence where name = '" + table + "')");
  }  // MariaDB's own figure may be old
  return checks;
}

/// PostgreSQL takes nothing but JSON into these columns.
std::vector<Check> json_checks() {
  const char* const mend =
      "another program has written it. Dead letters: postrider dead edit ID; the rest dies by itself when it "
      "is "
      "tried";
  return {no_rows("outbox.readable", "A", "payloads and headers are JSON", "event_id",
                  "{outbox_event} where status <> 1 and ((payload is not null and not json_valid(payload)) "
                  "or (headers is "
                  "not null and not json_valid(headers)))",
                  mend),
          no_rows("queue.readable", "A", "payloads and headers are JSON", "id",
                  "{event_queue} where (payload is not null and not json_valid(payload)) or (headers is not "
                  "null and not "
                  "json_valid(headers))",
                  mend)};
}

std::string log_violation(Storage& storage, std::size_t sample) {
  EventLog log(storage);
  const auto head = static_cast<std::int64_t>(log.head());
  LogSeq at{std::max<std::int64_t>(0, head - static_cast<std::int64_t>(sample))};
  std::int64_t last = static_cast<std::int64_t>(at);
  std::size_t unreadable = 0;
  for (;;) {
    const LogPage page = log.read(at, 200);
    for (const LogEntry& entry : page.entries) {
      const auto seq = static_cast<std::int64_t>(entry.seq);
      if (seq <= last) return std::to_string(seq) + " comes behind " + std::to_string(last);
      last = seq;
      if (!entry.event) ++unreadable;
    }
    if (page.scanned_to == at) break;
    at = page.scanned_to;
  }
  return unreadable == 0 ? std::string() : std::to_string(unreadable) + " entries cannot be read";
}

/// Every event of the sample must be found by its type, by each of its tags, and by both together: what is
/// not found does not count in a condition.
std::string index_violation(const Database& database, Inspector& inspector, std::size_t sample) {
  EventStore store(*database.storage);
  const StreamKeys keys(database.options.stream_hash);
  EventStream events = store.read(Query::all(), {.limit = sample, .backwards = true});
  std::int64_t before = 0;
  while (const std::optional<StoredEvent> event = events.next()) {
    const auto position = static_cast<std::int64_t>(event->position());
    if (before != 0 && position >= before)
      return std::to_string(position) + " stands behind " + std::to_string(before);
    before = position;
    const std::vector<std::int64_t> wanted = keys.of_event(event->type(), event->tags());
    std::string sql = "select count(*) from " + inspector.table("event_tags") +
                      " where position = " + std::to_string(position) + " and hash in (";
    for (std::size_t i = 0; i < wanted.size(); ++i) sql += (i == 0 ? "" : ", ") + std::to_string(wanted[i]);
    const std::int64_t found = inspector.number(sql + ")");
    if (found != static_cast<std::int64_t>(wanted.size())) {
      return "the event at " + std::to_string(position) + " has " + std::to_string(found) + " of " +
             std::to_string(wanted.size()) + " index entries";
    }
  }
  return {};
}

}  // namespace

std::vector<Check> table_checks(Inspector& inspector) {
  std::vector<Check> all = outbox_checks();
  const auto append = [&](std::vector<Check> more) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  };
  append(queue_checks(inspector));
  append(relay_checks());
  all.push_back(store_gaps());
  if (inspector.kind() != BackendKind::sqlite) all.push_back(log_unnumbered());
  append(number_checks(inspector));
  if (inspector.kind() != BackendKind::postgres) append(json_checks());
  if (inspector.kind() == BackendKind::sqlite) {
    all.push_back({.name = "file",
                   .invariant = "A",
                   .holds = "the file is not damaged",
                   .mend = "restore it from a backup, or: sqlite3 FILE .recover",
                   .violation = [](Inspector& file) {
                     const std::string said = file.text("pragma quick_check(1)");
                     return said == "ok" ? std::string() : said;
                   }});
  }
  return all;
}

std::vector<Check> content_checks(const Database& database, std::size_t sample) {
  const std::string which = "the newest " + std::to_string(sample) + " ";
  return {{.name = "log.readable",
           .invariant = "E",
           .holds = which + "entries of the log are in order, and can be read",
           .mend = "another program has written them; projections stop there, or skip them by their policy",
           .violation = [&database,
                         sample](Inspector& /*sql*/) { return log_violation(*database.storage, sample); }},
          {.name = "store.index",
           .invariant = "G",
           .holds = which + "events of the store are in order, and found by type and tags",
           .mend = "events were written, or their index removed, by hand: restore event_tags from a backup",
           .violation = [&database, sample](Inspector& inspector) {
             return index_violation(database, inspector, sample);
           }}};
}

Growing read_growing(Inspector& inspector) {
  Growing values;
  const auto read = [&](const std::string& what, const std::string& name, const std::string& value,
                        const char* table) {
    const Rows rows = inspector.select("select " + name + ", " + value + " from " + inspector.table(table) +
                                       " order by 1 limit 10000");
    for (const auto& row : rows.rows) values[what + text(row[0])] = number(row[1]);
  };
  const bool sqlite = inspector.kind() == BackendKind::sqlite;  // which has no concat before 3.44
  const auto joined = [&](const char* one, const char* two) {
    return sqlite ? std::string(one) + " || '/' || " + two
                  : "concat(" + std::string(one) + ", '/', " + two + ")";
  };
  read("pair ", joined("topic", "publisher"), "epoch", "outbox_topic_progress");
  read("lease ", "name", "epoch", "outbox_lease");
  read("projection ", joined("name", "version"), "epoch", "event_projection");
  values["the end of the store"] = inspector.number("select max(position) from " + inspector.table("events"));
  values["the end of the log"] = inspector.number("select " + log_end(inspector));
  return values;
}

Check grows(Growing before) {
  return {.name = "epochs",
          .invariant = "F",
          .holds = "epochs and ends have only grown meanwhile",
          .mend = "is there a second primary, or was a backup restored just now?",
          .violation = [before = std::move(before)](Inspector& inspector) {
            const Growing after = read_growing(inspector);
            for (const auto& [name, value] : before) {
              const auto now = after.find(name);
              if (now != after.end() && now->second < value) {
                return name + " went from " + std::to_string(value) + " to " + std::to_string(now->second);
              }
            }
            return std::string();
          }};
}

}  // namespace postrider::cli
