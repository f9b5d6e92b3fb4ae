// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/queue_sql.hpp"

#include "backends/sqlite/event_columns.hpp"
#include "postrider/failed_attempt.hpp"

namespace postrider::sqlite {

static_assert(first_queue_column == event_column_count);

namespace {

std::string repeated(const std::string& what) {
  std::string list = what;
  for (std::size_t i = 1; i < block_size; ++i) list += ", " + what;
  return list;
}

}  // namespace

QueueSql::QueueSql(const Identifier& schema) {
  const std::string queue = schema.str() + "_event_queue";
  const std::string log = schema.str() + "_event_log";
  const std::string state = schema.str() + "_event_handler_state";
  const std::string attempt = schema.str() + "_event_attempt";
  const std::string columns(event_columns);
  // Every write about a claimed row: in progress, and with the holder's token.
  const std::string if_held = " where id = ? and token = ? and status = 1";
  const std::string free_again = "status = 0, owner = null, lease_until = null";
  const std::string row = "select " + columns +
                          ", id, priority, available_at, status, lease_until, owner, attempts, crashes, "
                          "token from " +
                          queue;

  insert = "insert into " + queue + " (" + columns + ", updated_at, available_at, priority, dedupe_key)" +
           " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
           " on conflict (dedupe_key) where dedupe_key is not null do nothing";
  duplicate = "select id from " + queue + " where dedupe_key = ?";
  due = row +
        " where priority = ? and available_at <= ? and ordering_key is null and quarantined_at is null"
        " and (status = 0 or coalesce(lease_until, 0) <= ?) order by available_at, id";
  first_key = "select ordering_key from " + queue +
              " where ordering_key is not null and quarantined_at is null order by ordering_key, id limit 1";
  next_key = "select ordering_key from " + queue +
             " where ordering_key > ? and quarantined_at is null order by ordering_key, id limit 1";
  key_rows = row + " where ordering_key = ? and id > ? and quarantined_at is null order by id";
  // Of its room the row gives the sixteen bytes of two times, and the owner's: it keeps its size.
  const std::string claimed =
      " set status = 1, attempts = min(max(attempts, 0), 2147483646) + 1, owner = ?1, "
      "room = zeroblob(max(0, 41 - length(cast(?1 as blob)))), lease_until = ?, processing_started_at = ?, "
      "updated_at = ?, ";
  take = "update " + queue + claimed + "token = token % 1000000000000000000 + 1, crashes = ? where id = ?";
  take_fresh = "update " + queue + claimed + "token = 1 where available_at <= ? and id in (" + repeated("?") +
               ") and status = 0 and token = 0 and ordering_key is null and quarantined_at is null";
  quarantine = "update " + queue + " set " + free_again +
               ", token = token % 1000000000000000000 + 1, crashes = ?, last_error = ?, quarantined_at = ?, "
               "updated_at = ?"
               " where id = ?";
  renew = "update " + queue + " set lease_until = ?" + if_held;
  const std::string moved = "id, token, " + columns + ", priority, attempts, crashes, processing_started_at";
  to_log = "insert into " + log + " (" + moved + ", status, finalized_at, results) select " + moved +
           ", ?, ?, ? from " + queue + if_held;
  remove = "delete from " + queue + " where id = ?";
  // The cross join keeps SQLite from beginning with the queue. The names are unlike the queue's columns.
  to_log_block = "with settled(event, claim, outcome, said) as (values " + repeated("(?, ?, ?, ?)") +
                 ") insert into " + log + " (" + moved + ", status, finalized_at, results) select " + moved +
                 ", outcome, ?, said from settled cross join " + queue +
                 " on id = event and token = claim and status = 1";
  remove_block = "delete from " + queue + " where id in (" + repeated("?") + ")";
  retry = "update " + queue + " set " + free_again + ", available_at = ?, last_error = ?, updated_at = ?" +
          if_held;
  release = "update " + queue + " set " + free_again +
            ", attempts = max(attempts, 1) - 1, available_at = max(available_at, ?), updated_at = ?" +
            if_held;
  find = "select token, status from " + queue + " where id = ?";
  find_logged = "select token from " + log + " where id = ?";
  held = "select 1 from " + queue + if_held;
  save_state = "insert into " + state +
               " (id, handler, result, failed, error, updated_at) values (?, ?, ?, ?, ?, ?)"
               " on conflict (id, handler) do update set result = excluded.result, failed = excluded.failed,"
               " error = excluded.error, updated_at = excluded.updated_at where " +
               state + ".result <> 0";
  const std::string log_attempt_of =
      "insert into " + attempt +
      " (id, token, attempt, started_at, at, owner, outcome, error) select id, "
      "token, attempts, processing_started_at, ";
  log_attempt = log_attempt_of + "?, owner, ?, ? from " + queue + if_held + " on conflict do nothing";
  log_crash = log_attempt_of + "coalesce(lease_until, ?), owner, 4, null from " + queue +
              " where id = ? and status = 1 on conflict do nothing";
  trim_attempts = "delete from " + attempt + " where id = ?1 and token <= (select token from " + attempt +
                  " where id = ?1 order by token desc limit 1 offset " + std::to_string(max_kept_attempts) +
                  ")";
  states = "select handler, result, failed, error from " + state + " where id = ? order by handler";
  done = "select handler from " + state + " where id = ? and result = 0";
  left_states = "select s.id, s.handler from " + state + " as s where not exists (select 1 from " + queue +
                " as q where q.id = s.id) limit ?";
  delete_state = "delete from " + state + " where id = ? and handler = ?";
}

}  // namespace postrider::sqlite
