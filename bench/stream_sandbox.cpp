// SPDX-License-Identifier: Apache-2.0
#include "stream_sandbox.hpp"

#include <algorithm>

#include "storage/stream_rows.hpp"

namespace postrider::bench {
namespace {

constexpr const char* type = "MoneyTransferred";

/// A JSON document of exactly 128 bytes.
std::string payload_128(std::size_t number) {
  std::string text = R"({"number":)" + std::to_string(number) + R"(,"text":")";
  text.append(126 - text.size(), 'x');
  return text + "\"}";
}

Tags tags_of(const std::string& wallet, std::size_t number) {
  return {{"region", std::to_string(number % 50)}, {"wallet", wallet}};
}

}  // namespace

void StreamSandbox::seed(std::size_t events, std::size_t hot_every) {
  const BackendKind kind = sandbox_.kind();
  const std::string hot = std::to_string(StreamKeys().of_query(Query::tag("hot", "1")).front().front());
  // Any well spread number does for a hash. In the order of the index, which is how such a table grows
  // cheapest.
  const std::string hash = kind == BackendKind::postgres
                               ? "hashint8extended(n / 5, k)"
                               : "((n / 5 + k * 1000003) * 2654435761 % 9007199254740881 * 1023)";
  constexpr std::size_t per_transaction = 500'000;
  // An index over many rows is made much quicker afterwards.
  const bool index_later = kind == BackendKind::postgres && events >= per_transaction;
  if (index_later)
    sandbox_.run("ALTER TABLE " + sandbox_.table("event_tags") + " DROP CONSTRAINT event_tags_pkey");
  for (std::size_t left = events; left > 0;) {
    const std::size_t count = std::min(left, per_transaction);
    const std::string range = numbers(kind, seeded_ + 1, seeded_ + count);
    const std::string now = kind == BackendKind::postgres ? "now()" : "1700000000000000";
    sandbox_.run("INSERT INTO " + sandbox_.table("events") +
                 " (position, event_id, type, tags, data, occurred_at, stored_at, size) SELECT n, " +
                 numbered_id(kind) + ", 'Other', '[\"region=1\",\"wallet=1\"]', '" + payload_128(0) + "', " +
                 now + ", " + now + ", 150 FROM " + range);
    sandbox_.run(
        "INSERT INTO " + sandbox_.table("event_tags") + " (hash, position) SELECT h, n FROM (SELECT n, " +
        hash + " AS h FROM (SELECT n, k FROM " + range +
        " CROSS JOIN (SELECT 1 AS k UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL "
        "SELECT 5) AS ks) AS pairs) AS hashed" +
        (index_later ? "" : " ORDER BY h, n"));
    if (hot_every > 0) {
      sandbox_.run("INSERT INTO " + sandbox_.table("event_tags") + " (hash, position) SELECT " + hot +
                   ", n FROM " + range + " WHERE n % " + std::to_string(hot_every) + " = 0");
    }
    seeded_ += count;
    left -= count;
  }
  if (index_later) {
    sandbox_.run("ALTER TABLE " + sandbox_.table("event_tags") +
                 " ADD CONSTRAINT event_tags_pkey PRIMARY KEY (hash, position)");
  }
  if (kind == BackendKind::postgres) {
    sandbox_.run("ANALYZE " + sandbox_.table("events"));
    sandbox_.run("ANALYZE " + sandbox_.table("event_tags"));
  }
}

std::unique_ptr<BareAppender> StreamSandbox::bare() {
  const std::string events = sandbox_.table("events");
  const std::string tags = sandbox_.table("event_tags");
  return sandbox_.kind() == BackendKind::postgres
             ? bare_appender_libpq(sandbox_.url(), events, tags)
             : bare_appender_sqlite(sandbox_.file().string(), events, tags);
}

AppendEvent StreamSandbox::event(const std::string& wallet, std::size_t number) {
  return AppendEvent::builder(type).tags(tags_of(wallet, number)).data(payload_128(number)).build();
}

BareStreamRow StreamSandbox::row(const std::string& wallet, std::size_t number) {
  const Tags tags = tags_of(wallet, number);
  return {.id = new_event_id(),
          .type = type,
          .tags = encode_tags(tags),
          .data = payload_128(number),
          .hashes = StreamKeys().of_event(type, tags)};
}

Query StreamSandbox::own(const std::string& wallet) {
  return Query::of({{.types = {type}, .tags = {{"wallet", wallet}}}});
}

}  // namespace postrider::bench
