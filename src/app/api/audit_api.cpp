// SPDX-License-Identifier: Apache-2.0
#include "app/api/audit_api.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "app/api/json_values.hpp"
#include "app/api/members.hpp"
#include "app/api/record_json.hpp"
#include "core/what_of.hpp"
#include "postrider/detail/sync.hpp"
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

/// How far changes have come that are made in pieces, and what the audit says of them: of the newest alone.
/// Whoever is forgotten, or goes on at another node, gets another entry, which has the rest. Thread-safe.
class PieceSums {
 public:
  struct Sum {
    std::string what;                    ///< with all pieces so far
    std::optional<std::string> written;  ///< what the audit has
  };
  /// Nothing for what is no piece.
  std::optional<Sum> add(const AuditRecord& record) POSTRIDER_EXCLUDES(mutex_) {
    if (!record.piece) return std::nullopt;
    const MutexLock lock(mutex_);
    Change* change = find(record);
    if (change == nullptr) {
      if (changes_.size() == most) changes_.pop_front();
      change = &changes_.emplace_back(Change{.who = record.who, .piece = *record.piece});
      change->piece.events = 0;
    }
    change->piece.events += record.piece->events;
    return Sum{change->piece.text(change->piece.events), change->written};
  }
  void written(const AuditRecord& record, const std::string& what) POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (Change* const change = find(record)) change->written = what;
  }

 private:
  struct Change {
    std::string who{};
    AuditPiece piece{};  ///< with the events of all
    std::optional<std::string> written{};
  };
  static constexpr std::size_t most = 256;

  Change* find(const AuditRecord& record) POSTRIDER_REQUIRES(mutex_) {
    const auto found = std::find_if(changes_.begin(), changes_.end(), [&](const Change& one) {
      return one.who == record.who && one.piece.action == record.piece->action &&
             one.piece.verb == record.piece->verb && one.piece.of == record.piece->of;
    });
    return found == changes_.end() ? nullptr : &*found;
  }

  Mutex mutex_;
  std::deque<Change> changes_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<ApiRoute> audit_routes() {
  return {{.pattern = "/api/audit", .handler = list}};
}

std::function<void(const AuditRecord&)> audit_writer(std::function<Storage*()> storage, LogCallback log) {
  const auto sums = std::make_shared<PieceSums>();
  return [storage = std::move(storage), log = std::move(log), sums](const AuditRecord& record) {
    const std::optional<PieceSums::Sum> sum = sums->add(record);
    const std::string& what = sum ? sum->what : record.what;
    const std::string text = record.who + ": " + what;
    log(LogLevel::info, "postrider: audit: " + text);
    try {
      Storage* const database = storage();
      if (database == nullptr) throw Error(ErrorCode::unavailable, "the database is gone");
      AuditStore& store = database->audit_store();
      if (sum && sum->written && store.extend(record.who, *sum->written, what)) {
        sums->written(record, what);
        return;
      }
      const AuditEntry entry{.who = record.who, .what = what};
      store.append({&entry, 1});
      if (sum) sums->written(record, what);
    } catch (const std::exception& error) {
      log(LogLevel::error, "postrider: the audit table does not have what this line has: " + text + " (" +
                               what_of(error) + ")");
    }
  };
}

}  // namespace postrider::api
