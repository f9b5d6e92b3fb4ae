// SPDX-License-Identifier: Apache-2.0
// Publishing without this library: by the function, the procedure or the view that the migrations leave
// behind, through the database's own driver.
#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <set>
#include <utility>

#include "integration/outbox_fixture.hpp"
#include "postrider/error.hpp"
#include "postrider/open.hpp"
#include "storage/migrator.hpp"
#include "support/eventually.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Arguments of a publication in SQL; empty ones are not given.
struct SqlEvent {
  std::string type = "OrderPlaced";
  std::string payload = "{}";
  std::string id{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string tenant_id{};
  std::string ordering_key{};
  std::string headers{};
  std::optional<TimePoint> deliver_at{};
  std::optional<TimePoint> occurred_at{};
};

class SqlPublish : public OutboxTest {
 protected:
  [[nodiscard]] std::string quoted(const std::string& text) const {
    std::string result = "'";
    for (const char c : text) {
      if (c == '\'' || (c == '\\' && backend() == "mariadb")) result += c;
      result += c;
    }
    return result + "'";
  }
  [[nodiscard]] std::string time(std::optional<TimePoint> point) const {
    if (!point) return "NULL";
    const std::string micros = std::to_string(point->time_since_epoch().count());
    if (backend() == "postgres") return "timestamptz 'epoch' + " + micros + " * interval '1 microsecond'";
    if (backend() == "mariadb")
      return "TIMESTAMP'1970-01-01 00:00:00.000000' + INTERVAL " + micros + " MICROSECOND";
    return micros;
  }

  /// As a user of the database would write it.
  void publish_sql(test::ForeignConnection& connection, const SqlEvent& event) const {
    const std::string name = database_->table("publish");
    const std::array<std::pair<const char*, const std::string*>, 8> texts{
        {{"event_type", &event.type},
         {"payload", &event.payload},
         {"aggregate_type", &event.aggregate_type},
         {"aggregate_id", &event.aggregate_id},
         {"tenant_id", &event.tenant_id},
         {"ordering_key", &event.ordering_key},
         {"headers", &event.headers},
         {"event_id", &event.id}}};
    if (backend() == "mariadb") {
      connection.run("SET @id = " + (event.id.empty() ? "NULL" : quoted(event.id)));
      std::string sql = "CALL " + name + "_event(@id";
      for (std::size_t i = 0; i + 1 < texts.size(); ++i) {
        const std::string& text = *texts.at(i).second;
        sql += ", " + (text.empty() && i > 1 ? "NULL" : quoted(text));
      }
      connection.run(sql + ", " + time(event.deliver_at) + ", " + time(event.occurred_at) + ")");
      return;
    }
    std::vector<std::pair<std::string, std::string>> given;
    for (const auto& [argument, text] : texts) {
      if (!text->empty() || given.size() < 2) given.emplace_back(argument, quoted(*text));
    }
    if (event.deliver_at) given.emplace_back("deliver_at", time(event.deliver_at));
    if (event.occurred_at) given.emplace_back("occurred_at", time(event.occurred_at));
    std::string names;
    std::string values;
    std::string both;
    for (const auto& [argument, value] : given) {
      names += (names.empty() ? "" : ", ") + argument;
      values += (values.empty() ? "" : ", ") + value;
      both += (both.empty() ? "" : ", ") + argument + " => " + value;
    }
    if (backend() == "postgres") return connection.run("SELECT " + name + "(" + both + ")");
    connection.run("INSERT INTO " + name + " (" + names + ") VALUES (" + values + ")");
  }
  /// The shortest form.
  void publish_short(test::ForeignConnection& connection) const {
    const std::string name = database_->table("publish");
    const std::string arguments = R"(('OrderPlaced', '{"id":1}'))";
    if (backend() == "postgres") return connection.run("SELECT " + name + arguments);
    if (backend() == "mariadb") return connection.run("CALL " + name + arguments);
    connection.run("INSERT INTO " + name + " (event_type, payload) VALUES " + arguments);
  }
  /// What the database says about it, or nothing when it takes it.
  std::string refusal(test::ForeignConnection& connection, const SqlEvent& event) const {
    connection.begin();
    std::string why;
    try {
      publish_sql(connection, event);
    } catch (const std::runtime_error& error) {
      why = error.what();
    }
    connection.rollback();
    return why;
  }

  static TimePoint at(int year) {
    return TimePoint{std::chrono::sys_days{std::chrono::year{year} / 5 / 6}} + 7h + 8us;
  }
};

TEST_P(SqlPublish, CommittedItIsDeliveredOnceWithAllItsFields) {
  open();
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  const auto connection = connect_foreign();
  connection->begin();
  publish_sql(*connection, {.payload = R"({ "name" : "Ada's \"café\"" })",
                            .id = "order-1",
                            .aggregate_type = "Order",
                            .aggregate_id = "1",
                            .tenant_id = "acme",
                            .ordering_key = "Order:1",
                            .headers = R"({"trace":"abc","b":"é\n\"/\\"})",
                            .occurred_at = at(2021)});
  EXPECT_EQ(outbox.poll(), 0U) << "not before the commit";
  connection->commit();
  EXPECT_EQ(outbox.poll(), 1U) << "no lease to wait for";
  ASSERT_TRUE(seen_.await(1));
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 1));
  const Event event = seen_.events().front();
  EXPECT_EQ(event.id().str(), "order-1");
  EXPECT_EQ(event.type(), "OrderPlaced");
  EXPECT_EQ(event.payload(), R"({ "name" : "Ada's \"café\"" })");
  EXPECT_EQ(event.payload_kind(), PayloadKind::json);
  EXPECT_EQ(event.aggregate_type(), "Order");
  EXPECT_EQ(event.aggregate_id(), "1");
  EXPECT_EQ(event.tenant_id(), "acme");
  EXPECT_EQ(event.ordering_key(), "Order:1");
  EXPECT_EQ(event.headers(), (Headers{{"b", "é\n\"/\\"}, {"trace", "abc"}}));
  EXPECT_EQ(event.occurred_at(), at(2021));
  EXPECT_EQ(status(event.id()), EventStatus::done);
  EXPECT_EQ(outbox.poll(), 0U);
  EXPECT_EQ(seen_.count(), 1U);
}

TEST_P(SqlPublish, WithoutAnIdItHasAUlidOfItsMomentWhichListsGoBy) {
  open();
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  constexpr std::size_t count = 40;
  const auto millis = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  };
  const auto connection = connect_foreign();
  const std::int64_t before = millis();
  for (std::size_t i = 0; i < count; ++i) publish_short(*connection);
  const std::int64_t after = millis();
  std::size_t polled = 0;
  for (std::size_t i = 0; i < count && polled < count; ++i)
    polled += outbox.poll();  // a poll may take a part
  ASSERT_EQ(polled, count);
  ASSERT_TRUE(seen_.await(count));
  std::set<std::string> ids;
  for (const Event& event : seen_.events()) {
    const std::string id = event.id().str();
    ids.insert(id);
    constexpr std::string_view letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    ASSERT_EQ(id.size(), 26U) << id;
    ASSERT_EQ(id.find_first_not_of(letters), std::string::npos) << id;
    std::int64_t moment = 0;
    for (const char c : id.substr(0, 10)) moment = moment * 32 + static_cast<std::int64_t>(letters.find(c));
    EXPECT_GE(moment, before - 1) << id;  // rounded
    EXPECT_LE(moment, after + 1) << id;
  }
  EXPECT_EQ(ids.size(), count);
}

TEST_P(SqlPublish, TheRowIsWhatTheLibraryWouldHaveWritten) {
  open();
  Outbox stopped{*storage_, without_poller()};  // has no hot queue to lease its rows for
  publish(stopped, Event::builder("T")
                       .id(EventId("library"))
                       .aggregate("Order", "1")
                       .tenant("acme")
                       .ordering_key("k")
                       .header("a", "1")
                       .deliver_at(at(2030))
                       .occurred_at(at(2021))
                       .json(R"({"a": 1})")
                       .build());
  const auto connection = connect_foreign();
  publish_sql(*connection, {.type = "T",
                            .payload = R"({"a": 1})",
                            .id = "sql",
                            .aggregate_type = "Order",
                            .aggregate_id = "1",
                            .tenant_id = "acme",
                            .ordering_key = "k",
                            .headers = R"({"a":"1"})",
                            .deliver_at = at(2030),
                            .occurred_at = at(2021)});
  publish(stopped, Event::builder("T").id(EventId("library2")).json("{}").build());
  publish_sql(*connection, {.type = "T", .id = "sql2"});
  Transaction tx = storage_->begin();
  const std::string columns =
      "event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, payload, payload_bytes, headers, "
      "status, "
      "attempts, done_at, last_error, owner, lease_until, token";
  const std::string text = backend() == "mariadb" ? "char" : "text";
  for (const std::string number : {"", "2"}) {
    const auto row_of = [&](const std::string& id) {
      std::string list;
      std::string rest = columns + ", ";
      for (std::size_t end = rest.find(", "); end != std::string::npos; end = rest.find(", ")) {
        list += ", coalesce(cast(" + rest.substr(0, end) + " as " + text + "), 'NULL')";
        rest.erase(0, end + 2);
      }
      const Rows rows = tx.execute("SELECT " + list.substr(2) + " FROM " + database_->table("outbox_event") +
                                   " WHERE event_id = '" + id + "'");
      std::vector<std::string> values;
      for (std::size_t i = 0; i < 15; ++i) values.push_back(rows.text(0, i));
      return values;
    };
    EXPECT_EQ(row_of("sql" + number), row_of("library" + number));
  }
  tx.rollback();
  EXPECT_EQ(row(EventId("sql"))->available_at, at(2030));
  EXPECT_EQ(row(EventId("sql"))->occurred_at, at(2021));
}

TEST_P(SqlPublish, RolledBackItNeverWas) {
  open();
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  const auto connection = connect_foreign();
  connection->begin();
  publish_sql(*connection, {.id = "undone"});
  connection->rollback();
  connection->begin();
  publish_sql(*connection, {.id = "kept"});
  connection->run("SAVEPOINT before_it");
  publish_sql(*connection, {.id = "undone"});
  connection->run("ROLLBACK TO SAVEPOINT before_it");
  connection->commit();
  EXPECT_EQ(outbox.poll(), 1U);
  ASSERT_TRUE(seen_.await(1));
  EXPECT_EQ(seen_.events().front().id().str(), "kept");
  const OutboxCounts all = counts();  // one look: between two the event may be done
  EXPECT_EQ(all.pending + all.done, 1);
}

TEST_P(SqlPublish, TheShortFormMakesIdsOfItsOwn) {
  open();
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  const auto connection = connect_foreign();
  constexpr std::size_t many = 100;
  for (std::size_t i = 0; i < many; ++i) publish_short(*connection);
  std::size_t polled = 0;
  while (const std::size_t some = outbox.poll()) polled += some;
  EXPECT_EQ(polled, many);
  ASSERT_TRUE(seen_.await(many));
  EXPECT_EQ(times(seen_).size(), many);
  const Event event = seen_.events().front();
  EXPECT_EQ(event.payload(), R"({"id":1})");
  EXPECT_EQ(event.ordering_key(), "");
  EXPECT_LT(std::chrono::abs(event.occurred_at() - Clock::system().now()), 1min);
}

TEST_P(SqlPublish, NotBeforeItsTime) {
  open();
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  const auto connection = connect_foreign();
  publish_sql(*connection, {.id = "later", .deliver_at = Clock::system().now() + 1h});
  publish_sql(*connection, {.id = "past", .deliver_at = at(2020)});
  EXPECT_EQ(outbox.poll(), 1U);
  ASSERT_TRUE(seen_.await(1));
  EXPECT_EQ(seen_.events().front().id().str(), "past");
}

TEST_P(SqlPublish, WhatNoEventCanBeIsRefused) {
  open();
  const auto connection = connect_foreign();
  publish_sql(*connection, {.id = "there"});
  std::string many_headers = R"({"h0":"")";
  for (int i = 1; i <= 64; ++i) many_headers += ",\"h" + std::to_string(i) + "\":\"\"";
  many_headers += "}";
  const std::string long_header = R"({"a":")" + std::string(4097, 'x') + "\"}";
  const std::string long_name = "{\"" + std::string(129, 'n') + R"(":""})";
  const auto text = [](std::size_t length) { return std::string(length, 'x'); };
  const std::vector<std::pair<std::string, SqlEvent>> cases{
      {"type", {.type = ""}},
      {"type", {.type = text(129)}},
      {"aggregate type", {.aggregate_type = text(65)}},
      {"aggregate id", {.aggregate_id = text(129)}},
      {"tenant id", {.tenant_id = text(65)}},
      {"ordering key", {.ordering_key = text(201)}},
      {"id", {.id = text(37)}},
      {"id", {.id = "a b"}},
      {"id", {.id = "é"}},
      {"", {.id = "there"}},
      {backend() == "postgres" ? "json" : "payload", {.payload = ""}},
      {backend() == "postgres" ? "json" : "payload", {.payload = "{\"a\":}"}},
      {"payload", {.payload = "\"" + text(EventLimits::payload_bytes - 1) + "\""}},
      {"header", {.headers = "[]"}},
      {"header", {.headers = "\"a\""}},
      {"header", {.headers = R"({"a":1})"}},
      {"header", {.headers = R"({"a":{"b":"c"}})"}},
      {"header", {.headers = R"({"":"c"})"}},
      {"header", {.headers = long_header}},
      {"header", {.headers = long_name}},
      {"header", {.headers = many_headers}},
      {"deliver_at", {.deliver_at = at(999)}},
      {"occurred_at", {.occurred_at = at(999)}},
  };
  for (const auto& [field, event] : cases) {
    const std::string why = refusal(*connection, event);
    EXPECT_THAT(why, HasSubstr(field));
    EXPECT_NE(why, "") << field;
    EXPECT_EQ(counts().pending, 1) << field;
  }
  if (backend() != "sqlite") {
    const std::string deep = std::string(257, '[') + std::string(257, ']');
    EXPECT_THAT(refusal(*connection, {.payload = deep}), HasSubstr("nested deeper"));
  }
}

TEST_P(SqlPublish, HalfOfASurrogatePairIsRefusedOrADeadLetterWithTheReason) {
  open();
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  const auto connection = connect_foreign();
  const SqlEvent half{.payload = R"("\ud800")", .id = "half"};
  if (backend() == "mariadb") {
    EXPECT_THAT(refusal(*connection, half), HasSubstr("payload: it is not valid JSON"));
    return;
  }
  publish_sql(*connection, half);
  publish_sql(*connection, {.payload = R"("\ud83d\ude00")", .id = "whole"});
  (void)outbox.poll();
  ASSERT_TRUE(seen_.await(1));
  EXPECT_EQ(seen_.events().front().id().str(), "whole");
  EXPECT_TRUE(test::eventually([&] { return counts().dead == 1; }));
  const std::optional<OutboxRecord> dead = OutboxAdmin(*storage_).find(EventId("half"));
  ASSERT_TRUE(dead.has_value());
  EXPECT_EQ(dead->status, EventStatus::dead);
  EXPECT_THAT(dead->last_error, HasSubstr("payload: it is not valid JSON"));
}

TEST_P(SqlPublish, AtItsBoundsAnEventIsTakenAndDelivered) {
  open();
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  const auto connection = connect_foreign();
  const auto wide = [](std::size_t length) {
    std::string text;
    while (length-- > 0) text += "é";
    return text;
  };
  const std::size_t depth = backend() == "mariadb" ? 31 : EventLimits::json_depth;
  publish_sql(*connection, {.type = wide(128),
                            .payload = "\"" + std::string(EventLimits::payload_bytes - 2, 'x') + "\"",
                            .id = std::string(36, '~'),
                            .aggregate_type = wide(64),
                            .aggregate_id = wide(128),
                            .tenant_id = wide(64),
                            .ordering_key = wide(200),
                            .headers = "{\"" + wide(128) + "\":\"" + wide(2048) + "\"}",
                            .occurred_at = at(1000)});
  publish_sql(*connection, {.payload = std::string(depth, '[') + std::string(depth, ']')});
  EXPECT_EQ(outbox.poll(), 2U);
  ASSERT_TRUE(seen_.await(2)) << "not a dead letter";
  for (const Event& event : seen_.events()) {
    if (event.id().str().front() != '~') continue;
    EXPECT_EQ(event.payload().size(), EventLimits::payload_bytes);
    EXPECT_EQ(event.ordering_key(), wide(200));
    EXPECT_EQ(event.headers().at(wide(128)), wide(2048));
  }
}

TEST_P(SqlPublish, AKeyKeepsItsOrderWhoeverPublishes) {
  open();
  OutboxOptions quick = options();
  quick.poller_interval = 20ms;
  Outbox outbox{*storage_, quick};
  start(outbox);
  const auto connection = connect_foreign();
  constexpr int each = 60;
  std::vector<std::string> expected;
  for (int i = 0; i < each; ++i) {
    expected.push_back(std::to_string(i));
    if (i % 3 == 1) {
      connection->begin();
      publish_sql(*connection, {.payload = expected.back(), .ordering_key = "k"});
      connection->commit();
    } else {
      publish(outbox, keyed("k", i));
    }
  }
  ASSERT_TRUE(seen_.await(each));
  outbox.stop();
  EXPECT_EQ(payloads(seen_), expected);
}

TEST_P(SqlPublish, WorksInWhateverSchemaAndGoesWithItsMigration) {
  test::TestDatabase database(backend(), {.migrate = false});
  StorageOptions options = database.options();
  options.schema = Identifier(database.options().schema.str() + "_b");
  const std::unique_ptr<Storage> storage = database.open_another(options);
  storage->migrate();
  const auto connection = test::ForeignConnection::open(storage->kind(), database.url());
  const std::string name = options.schema.str() + (backend() == "postgres" ? "." : "_") + "publish";
  const std::string arguments = "('T', '1')";
  const std::string sql = backend() == "postgres" ? "SELECT " + name + arguments
                          : backend() == "mariadb"
                              ? "CALL " + name + arguments
                              : "INSERT INTO " + name + " (event_type, payload) VALUES " + arguments;
  connection->run(sql);
  Outbox outbox{*storage, without_poller()};
  start(outbox);
  EXPECT_EQ(outbox.poll(), 1U);
  ASSERT_TRUE(seen_.await(1));
  outbox.stop();

  const MigrationReport all = storage->migrate({.target = 0, .dry_run = true});
  const auto step = std::find_if(all.steps.begin(), all.steps.end(),
                                 [](const MigrationStep& one) { return one.name == "publish"; });
  ASSERT_NE(step, all.steps.end());
  ASSERT_NE(std::next(step), all.steps.end());
  storage->migrate({.target = std::next(step)->version});
  EXPECT_THROW(connection->run(sql), std::runtime_error);
  storage->migrate();
  connection->run(sql);
  EXPECT_EQ(storage->migrate({.target = 0}).to, 0);
  EXPECT_THROW(connection->run(sql), std::runtime_error);
  if (backend() == "mariadb") {
    connection->run("DROP TABLE " + options.schema.str() + "_schema_migrations");
  }
}

POSTRIDER_FOR_EACH_BACKEND(SqlPublish);

}  // namespace
}  // namespace postrider
