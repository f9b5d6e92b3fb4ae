// SPDX-License-Identifier: Apache-2.0
#include "support/shop.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "postrider/open.hpp"
#include "postrider/outbox_admin.hpp"

namespace postrider::test {
namespace {

constexpr std::array fates{Fate::ok, Fate::flaky, Fate::later, Fate::dead, Fate::hopeless, Fate::waits};

std::string server_url(BackendKind kind) {
  const char* url = nullptr;
  if (kind == BackendKind::postgres) url = std::getenv("POSTRIDER_TEST_POSTGRES");
  if (kind == BackendKind::mariadb) url = std::getenv("POSTRIDER_TEST_MARIADB");
  return url == nullptr ? "" : url;
}

}  // namespace

std::string_view to_string(Fate fate) noexcept {
  switch (fate) {
    case Fate::ok:
      return "ok";
    case Fate::flaky:
      return "flaky";
    case Fate::later:
      return "later";
    case Fate::dead:
      return "dead";
    case Fate::hopeless:
      return "hopeless";
    case Fate::waits:
      return "waits";
  }
  return "unknown";
}

Fate fate_of(std::string_view text) {
  for (const Fate fate : fates) {
    if (to_string(fate) == text) return fate;
  }
  throw std::invalid_argument("no such fate: " + std::string(text));
}

EventBuilder event_of(const Order& order) {
  EventBuilder builder = Event::builder("OrderPlaced");
  builder.id(order.id)
      .json(R"({"order":")" + order.id.str() + "\"}")
      .header("fate", std::string(to_string(order.fate)))
      .header("number", std::to_string(order.number));
  if (!order.key.empty()) builder.ordering_key(order.key);
  return builder;
}

Order order_of(const Event& event) {
  return {event.id(), event.ordering_key(), std::stoll(event.headers().at("number")),
          fate_of(event.headers().at("fate"))};
}

Shop::Shop(Storage& storage, const std::string& schema)
    : storage_(storage), orders_(schema + "_shop_order"), lanes_(schema + "_shop_lane") {}

void Shop::create() {
  define(
      "create table " + orders_ +
      " (event_id varchar(36) not null primary key, order_key varchar(64) not null, number bigint not null,"
      " fate varchar(16) not null)");
  define("create table " + lanes_ + " (id integer not null primary key, entered bigint not null)");
  auto tx = storage_.begin();
  for (int lane = 0; lane < lanes; ++lane) tx.execute("insert into " + lanes_ + " values (?, 0)", lane);
  tx.commit();
}

void Shop::drop() {
  define("drop table if exists " + orders_);
  define("drop table if exists " + lanes_);
}

void Shop::define(const std::string& sql) const {
  auto tx = storage_.begin();
  tx.execute(sql);
  if (tx.active()) tx.commit();  // MariaDB has committed it already
}

void Shop::enter_lane(Tx& tx, int lane) const {
  tx.execute("update " + lanes_ + " set entered = entered + 1 where id = ?", lane);
}

void Shop::insert(Tx& tx, const Order& order) const {
  tx.execute("insert into " + orders_ + " (event_id, order_key, number, fate) values (?, ?, ?, ?)",
             order.id.view(), order.key, order.number, to_string(order.fate));
}

std::vector<Order> Shop::orders() const {
  auto tx = storage_.begin();
  const Rows rows =
      tx.execute("select event_id, order_key, number, fate from " + orders_ + " order by event_id");
  tx.commit();
  std::vector<Order> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    all.push_back({EventId(rows.text(i, 0)), rows.text(i, 1), rows.integer(i, 2), fate_of(rows.text(i, 3))});
  }
  return all;
}

bool CrashDatabase::available(BackendKind kind) {
  return kind == BackendKind::sqlite || !server_url(kind).empty();
}

CrashDatabase::CrashDatabase(BackendKind kind, std::string url) : kind_(kind), url_(std::move(url)) {
  static std::atomic<int> count{0};
  const std::string name = "crash_" + std::to_string(::getpid()) + "_" + std::to_string(++count);
  std::string folder = (std::filesystem::temp_directory_path() / (name + "_XXXXXX")).string();
  if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make " + folder);
  folder_ = folder;
  if (kind == BackendKind::sqlite) {
    if (url_.empty()) url_ = "sqlite:" + folder_ + "/shop.db";
    schema_ = "postrider";
  } else {
    if (url_.empty()) url_ = server_url(kind);
    schema_ = name;
  }
  auto storage = open();
  Shop(*storage, schema_).create();
}

CrashDatabase::~CrashDatabase() {
  if (keep_) {
    std::cerr << "kept for inspection: " << folder_ << " and schema " << schema_ << "\n";
    return;
  }
  try {
    if (kind_ != BackendKind::sqlite) drop();
  } catch (const std::exception& error) {
    std::cerr << "cannot drop schema " << schema_ << ": " << error.what() << "\n";
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void CrashDatabase::drop() const {
  auto storage = open();
  Shop(*storage, schema_).drop();
  storage->migrate({.target = 0});
  if (kind_ != BackendKind::postgres) return;
  auto tx = storage->begin();
  tx.execute("drop schema if exists " + schema_ + " cascade");
  tx.commit();
}

std::unique_ptr<Storage> CrashDatabase::open() const {
  StorageOptions options;
  options.schema = Identifier(schema_);
  return postrider::open(url_, options);
}

bool await_nothing_pending(Storage& storage, std::chrono::seconds timeout) {
  OutboxAdmin admin(storage);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (admin.counts().pending > 0) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(
        std::chrono::milliseconds{20});  // other processes work on it; nobody tells us
  }
  return true;
}

std::vector<BackendKind> crash_backends() {
  return {
    BackendKind::sqlite,
#if defined(POSTRIDER_WITH_POSTGRES)
        BackendKind::postgres,
#endif
#if defined(POSTRIDER_WITH_MARIADB)
        BackendKind::mariadb,
#endif
  };
}

}  // namespace postrider::test
