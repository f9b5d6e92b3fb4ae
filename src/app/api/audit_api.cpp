// SPDX-License-Identifier: Apache-2.0
#include "app/api/audit_api.hpp"

#include <array>
#include <boost/json.hpp>
#include <utility>

#include "app/api/json_values.hpp"
#include "app/api/members.hpp"
#include "app/api/record_json.hpp"
#include "core/what_of.hpp"
#include "storage/audit_store.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;
using http::Response;

Response list(Call& call) {
  constexpr std::array<std::string_view, 5> known{"who", "from", "to", "limit", "cursor"};
  only_parameters(call.request, known);
  AuditQuery query{.who = query_text(call.request, "who"),
                   .from = query_time(call.request, "from"),
                   .until = query_time(call.request, "to")};
  const auto limit = static_cast<std::size_t>(query_number(call.request, "limit", 100, 1, most_listed));
  query.limit = limit + 1;  // tells whether there is another page
  if (const auto place = read_cursor(call.request, 1)) query.before = AuditId{cursor_number(place->at(0))};
  std::vector<AuditEntry> entries = call.storage.audit_store().list(query);
  json::value next = nullptr;
  if (entries.size() > limit) {
    entries.resize(limit);
    const std::array<std::string, 1> place{std::to_string(static_cast<std::int64_t>(entries.back().id))};
    next = json::value(make_cursor(call.request, place));
  }
  json::array all;
  for (const AuditEntry& entry : entries) {
    all.push_back({{"id", static_cast<std::int64_t>(entry.id)},
                   {"at", time_text(entry.at)},
                   {"who", shown(entry.who)},
                   {"what", shown(entry.what)}});
  }
  return json_response({{"entries", std::move(all)}, {"nextCursor", std::move(next)}});
}

}  // namespace

std::vector<ApiRoute> audit_routes() {
  return {{.pattern = "/api/audit", .handler = list}};
}

std::function<void(const AuditRecord&)> audit_writer(std::function<Storage*()> storage, LogCallback log) {
  return [storage = std::move(storage), log = std::move(log)](const AuditRecord& record) {
    const std::string text = record.who + ": " + record.what;
    log(LogLevel::info, "postrider: audit: " + text);
    try {
      Storage* const database = storage();
      if (database == nullptr) throw Error(ErrorCode::unavailable, "the database is gone");
      const AuditEntry entry{.who = record.who, .what = record.what};
      database->audit_store().append({&entry, 1});
    } catch (const std::exception& error) {
      log(LogLevel::error, "postrider: the audit table does not have what this line has: " + text + " (" +
                               what_of(error) + ")");
    }
  };
}

}  // namespace postrider::api
