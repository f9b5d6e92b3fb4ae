// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_audit_store.hpp"

#include <string>

#include "core/utf8.hpp"

namespace postrider {
namespace {

constexpr std::string_view audit = "audit";

std::string bounded(std::string_view text, std::size_t chars) {
  return std::string(utf8_prefix(utf8_repaired(text), chars));
}

}  // namespace

void SqlAuditStore::append(std::span<const AuditEntry> entries) {
  if (entries.empty()) return;
  std::vector<std::string> texts;  // what the statement borrows
  texts.reserve(entries.size() * 2);
  SqlQuery query(dialect_);
  query.sql("insert into ").table(audit).sql(" (made_at, who, what) values ");
  for (const AuditEntry& entry : entries) {
    if (!texts.empty()) query.sql(", ");
    const std::string& who = texts.emplace_back(bounded(entry.who, AuditEntry::who_chars));
    const std::string& what = texts.emplace_back(bounded(entry.what, AuditEntry::what_chars));
    query.sql("(").now().sql(", ").bind(who).sql(", ").bind(what).sql(")");
  }
  query.run();
}

bool SqlAuditStore::extend(std::string_view who, std::string_view what, std::string_view more) {
  const std::string owner = bounded(who, AuditEntry::who_chars);
  const std::string before = bounded(what, AuditEntry::what_chars);
  const std::string after = bounded(more, AuditEntry::what_chars);
  SqlQuery search(dialect_);
  search.sql("select id from ").table(audit).sql(" where who = ").bind(owner);
  const Rows found = search.sql(" and what = ").bind(before).sql(" order by id desc limit 1").run();
  if (found.empty()) return false;
  SqlQuery query(dialect_);
  query.sql("update ").table(audit).sql(" set what = ").bind(after);
  query.sql(" where id = ").bind(found.integer(0, 0)).sql(" and what = ").bind(before);
  return query.run().affected == 1;
}

std::vector<AuditEntry> SqlAuditStore::list(const AuditQuery& wanted) {
  SqlQuery query(dialect_);
  query.sql("select id, ").micros("made_at").sql(", who, what from ").table(audit).sql(" where 1 = 1");
  query.and_equals("who", wanted.who);
  if (wanted.from) query.sql(" and made_at >= ").bind_time(*wanted.from);
  if (wanted.until) query.sql(" and made_at < ").bind_time(*wanted.until);
  if (wanted.before) query.sql(" and id < ").bind(static_cast<std::int64_t>(*wanted.before));
  const Rows rows = query.sql(" order by id desc limit ").bind_limit(wanted.limit).run();
  std::vector<AuditEntry> entries;
  entries.reserve(rows.size());
  for (const auto& row : rows.rows) {
    entries.push_back(
        {.id = AuditId{number(row[0])}, .at = time_of(row[1]), .who = text(row[2]), .what = text(row[3])});
  }
  return entries;
}

}  // namespace postrider
