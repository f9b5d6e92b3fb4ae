// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "app/cli/doctor_checks.hpp"
#include "core/age.hpp"
#include "storage/sql_query.hpp"

namespace postrider::cli {
namespace {

using Settings = std::map<std::string, std::string>;

constexpr const char* long_transaction = "5 minutes";

Settings settings_of(const Rows& rows) {
  Settings settings;
  for (const auto& row : rows.rows) settings[text(row.at(0))] = text(row.at(1));
  return settings;
}

/// A setting that is to have a value; `why` says what happens otherwise.
struct Wanted {
  const char* name;
  std::vector<std::string> good;
  const char* why;
  const char* mend;
};

void judge(const Settings& settings, const std::vector<Wanted>& wanted, Findings& findings) {
  for (const Wanted& one : wanted) {
    const auto found = settings.find(one.name);
    if (found == settings.end()) continue;
    const bool good = std::find(one.good.begin(), one.good.end(), found->second) != one.good.end();
    if (good) {
      findings.ok(one.name, found->second);
    } else {
      findings.bad(one.name, "it is " + found->second + ": " + one.why, one.mend);
    }
  }
}

void old_transactions(const Rows& rows, const std::string& end_of, Findings& findings) {
  for (const auto& row : rows.rows) {
    const std::string pid = text(row.at(0));
    findings.bad("transaction " + pid,
                 "open for " + format_about(Duration{number(row.at(1))}) + " (" + text(row.at(2)) +
                     "): old row versions cannot be removed, and claims get slower",
                 end_of.substr(0, end_of.find('#')) + pid + end_of.substr(end_of.find('#') + 1));
  }
  if (rows.empty()) findings.ok("transactions", std::string("none is open for ") + long_transaction);
}

}  // namespace

void check_postgres(Inspector& inspector, Findings& findings) {
  findings.ok("server", "PostgreSQL " + inspector.text("select current_setting('server_version')"));
  judge(settings_of(inspector.select(
            "select name, setting from pg_settings where name in ('synchronous_commit', 'fsync', "
            "'full_page_writes', 'default_transaction_isolation', 'default_transaction_read_only', "
            "'server_encoding')")),
        {{"synchronous_commit",
          {"on", "local", "remote_write", "remote_apply"},
          "a crash of the server may lose what was committed last",
          "alter system set synchronous_commit = on; select pg_reload_conf();"},
         {"fsync",
          {"on"},
          "a power cut may destroy the database",
          "alter system set fsync = on; then restart it"},
         {"full_page_writes",
          {"on"},
          "a power cut may leave pages that are half written",
          "alter system set full_page_writes = on; select pg_reload_conf();"},
         {"default_transaction_isolation",
          {"read committed"},
          "appends in your own transactions need READ COMMITTED, and workers meet serialization failures",
          "alter system set default_transaction_isolation = 'read committed'; select pg_reload_conf();"},
         // Ours are read-only while we look: reset_val is what others get.
         {"server_encoding",
          {"UTF8"},
          "events are UTF-8",
          "make a new database: create database … encoding 'UTF8'"}},
        findings);
  if (inspector.text("select reset_val from pg_settings where name = 'default_transaction_read_only'") ==
      "on") {
    findings.bad("default_transaction_read_only", "it is on: nothing can be published",
                 "alter system set default_transaction_read_only = off; select pg_reload_conf();");
  }
  if (inspector.text("select pg_is_in_recovery()") == "t") {
    findings.bad("recovery", "this server is a standby: it takes no writes", "name the primary in the URL");
  }
  old_transactions(
      inspector.select(
          "select pid, (extract(epoch from clock_timestamp() - xact_start) * 1000000)::bigint, "
          "concat_ws(', ', state, nullif(application_name, ''), usename) from pg_stat_activity "
          "where (backend_xmin is not null or backend_xid is not null) and pid <> pg_backend_pid() "
          "and xact_start < clock_timestamp() - interval '" +
          std::string(long_transaction) + "' order by xact_start limit 5"),
      "select pg_terminate_backend(#);", findings);
  const Rows prepared = inspector.select(
      "select gid from pg_prepared_xacts where database = current_database() and prepared < "
      "clock_timestamp() - "
      "interval '" +
      std::string(long_transaction) + "' order by prepared limit 5");
  for (const auto& row : prepared.rows) {
    findings.bad("prepared transaction",
                 text(row.at(0)) + " waits for its end: old row versions cannot be removed",
                 "rollback prepared '" + text(row.at(0)) + "', or commit it");
  }
}

void check_mariadb(Inspector& inspector, Findings& findings) {
  findings.ok("server", "MariaDB/MySQL " + inspector.text("select version()"));
  const auto read = [&](const std::string& name) { return inspector.text("select @@global." + name); };
  Settings settings{{"innodb_flush_log_at_trx_commit", read("innodb_flush_log_at_trx_commit")},
                    {"innodb_doublewrite", read("innodb_doublewrite")}};
  if (read("log_bin") == "1") settings["sync_binlog"] = read("sync_binlog");
  judge(settings,
        {{"innodb_flush_log_at_trx_commit",
          {"1"},
          "a crash may lose what was committed last",
          "set global innodb_flush_log_at_trx_commit = 1; and in my.cnf"},
         {"innodb_doublewrite",
          {"1", "ON"},
          "a power cut may leave pages that are half written",
          "innodb_doublewrite = 1 in my.cnf, then restart it"},
         {"sync_binlog",
          {"1"},
          "after a crash replicas may lack what was committed last",
          "set global sync_binlog = 1; and in my.cnf"}},
        findings);
  const std::string mode = read("sql_mode");
  if (mode.find("STRICT_TRANS_TABLES") == std::string::npos &&
      mode.find("STRICT_ALL_TABLES") == std::string::npos) {
    findings.bad("sql_mode", "it is not strict: what does not fit into a column is cut without an error",
                 "set global sql_mode = concat(@@global.sql_mode, ',STRICT_TRANS_TABLES'); and in my.cnf");
  } else {
    findings.ok("sql_mode", "strict");
  }
  std::string isolation;
  try {
    isolation = read("transaction_isolation");
  } catch (const std::exception&) {
    isolation = read("tx_isolation");  // before MariaDB 11.1
  }
  if (isolation == "READ-COMMITTED") {
    findings.ok("isolation", isolation);
  } else {
    findings.note("isolation",
                  isolation +
                      " for your own transactions, which lock more than they must; ours use "
                      "READ COMMITTED",
                  "set global transaction isolation level read committed; and in my.cnf");
  }
  findings.ok("time_zone", read("time_zone") + "; times are stored in UTC, whatever it is");
  const std::int64_t packet = inspector.number("select @@global.max_allowed_packet");
  constexpr std::int64_t least_packet = std::int64_t{8} << 20U;
  if (packet < least_packet) {
    findings.bad("max_allowed_packet",
                 "it is " + std::to_string(packet) + ": batches of large events do not fit",
                 "set global max_allowed_packet = 16777216; and in my.cnf");
  } else {
    findings.ok("max_allowed_packet", std::to_string(packet));
  }
  try {
    old_transactions(
        inspector.select(
            "select trx_mysql_thread_id, timestampdiff(microsecond, trx_started, now(6)), trx_state "
            "from information_schema.innodb_trx where trx_started < now() - interval 5 minute and "
            "trx_mysql_thread_id <> connection_id() order by trx_started limit 5"),
        "kill #;", findings);
  } catch (const std::exception&) {
    findings.skipped("transactions", "this user may not see them: it needs the right PROCESS");
  }
}

}  // namespace postrider::cli
