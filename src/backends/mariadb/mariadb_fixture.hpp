// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: a server from the environment, and a table prefix for each test.
#pragma once

#include <gtest/gtest.h>
#include <mysql.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backends/mariadb/session.hpp"
#include "backends/mariadb/url.hpp"
#include "core/failpoint.hpp"
#include "postrider/error.hpp"
#include "postrider/event.hpp"
#include "postrider/mariadb.hpp"
#include "storage/outbox_store.hpp"
#include "storage/queue_store.hpp"

namespace postrider::mariadb {

/// A connection as a user would have one, with libmariadb alone.
class Client {
 public:
  explicit Client(const ConnectSettings& settings) : mysql_(mysql_init(nullptr)) {
    const unsigned protocol = settings.socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
    mysql_options(mysql_, MYSQL_OPT_PROTOCOL, &protocol);
    if (mysql_real_connect(mysql_, settings.host.c_str(), settings.user.c_str(), settings.password.c_str(),
                           settings.database.c_str(), settings.port,
                           settings.socket.empty() ? nullptr : settings.socket.c_str(), 0) == nullptr) {
      throw std::runtime_error(mysql_error(mysql_));
    }
  }
  ~Client() { mysql_close(mysql_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] MYSQL* get() const noexcept { return mysql_; }
  /// The rows as text, NULL as "NULL".
  std::vector<std::vector<std::string>> query(const std::string& sql) {
    if (mysql_real_query(mysql_, sql.data(), static_cast<unsigned long>(sql.size())) != 0) {
      throw std::runtime_error(sql + ": " + mysql_error(mysql_));
    }
    std::vector<std::vector<std::string>> rows;
    MYSQL_RES* const result = mysql_store_result(mysql_);
    if (result == nullptr) return rows;
    while (MYSQL_ROW row = mysql_fetch_row(result)) {
      std::vector<std::string>& cells = rows.emplace_back();
      const unsigned long* const lengths = mysql_fetch_lengths(result);
      for (unsigned i = 0; i < mysql_num_fields(result); ++i) {
        cells.push_back(row[i] == nullptr ? "NULL" : std::string(row[i], lengths[i]));
      }
    }
    mysql_free_result(result);
    return rows;
  }
  std::string one(const std::string& sql) { return query(sql).at(0).at(0); }

 private:
  MYSQL* mysql_;
};

class MariadbTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const url = std::getenv("POSTRIDER_TEST_MARIADB");
    if (url == nullptr) {
      const char* const skip = std::getenv("POSTRIDER_SKIP_SERVERS");
      if (skip != nullptr && std::string_view(skip) == "1") {
        GTEST_SKIP() << "NOT TESTED: MariaDB, because POSTRIDER_SKIP_SERVERS=1";
      }
      FAIL() << "POSTRIDER_TEST_MARIADB is not set; run it through: scripts/with-servers <command>";
    }
    static std::atomic<int> count{0};
    prefix_ = "t" + std::to_string(::getpid()) + "_" + std::to_string(++count);
    url_ = url;
    settings_ = parse_url(url_);
    client_ = std::make_unique<Client>(settings_);
  }
  void TearDown() override {
    failpoints::clear();
    storage_.reset();
    if (client_ == nullptr) return;
    client_->query("ROLLBACK");
    for (const auto& row :
         client_->query("SELECT table_name FROM information_schema.tables WHERE table_schema = "
                        "DATABASE() AND LEFT(table_name, " +
                        std::to_string(prefix_.size() + 1) + ") = '" + prefix_ + "_'")) {
      client_->query("DROP TABLE " + row[0]);
    }
  }

  [[nodiscard]] std::string table() const { return prefix_ + "_outbox_event"; }
  [[nodiscard]] std::string queue_table() const { return prefix_ + "_event_queue"; }
  [[nodiscard]] std::unique_ptr<Storage> open_storage(StorageOptions options = {}) const {
    options.schema = prefix_;
    return driver().open(url_, options);
  }
  /// A migrated storage, made when first asked for.
  Storage& storage() {
    if (storage_ == nullptr) {
      storage_ = open_storage();
      storage_->migrate();
    }
    return *storage_;
  }
  OutboxStore& store() { return storage().outbox_store(); }
  QueueStore& queue() { return storage().queue_store(); }
  Client& client() { return *client_; }
  [[nodiscard]] Client new_client() const { return Client(settings_); }

  static Event event(const std::string& id, const std::string& payload = "{}") {
    return Event::builder("Test").id(EventId(id)).json(payload).build();
  }
  /// Inserts and commits, free for everybody unless a lease is given.
  void publish(const std::vector<Event>& events, std::string_view key = {}, Duration lease = {}) {
    Transaction tx = storage().begin();
    insert(tx, events, key, lease);
    tx.commit();
  }
  void insert(Tx& tx, const std::vector<Event>& events, std::string_view key = {}, Duration lease = {}) {
    std::vector<NewOutboxRow> rows;
    for (const Event& e : events) rows.push_back({.event = &e, .ordering_key = key, .lease = lease});
    store().insert(tx, "node", rows);
  }
  std::vector<std::string> claim(std::size_t limit = 100, std::string_view owner = "node") {
    std::vector<std::string> ids;
    for (const ClaimedEvent& c :
         store().claim({.owner = owner, .lease = std::chrono::seconds{30}, .limit = limit})) {
      ids.push_back(c.lease.id.str());
    }
    return ids;
  }

  std::string prefix_;
  std::string url_;
  ConnectSettings settings_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Storage> storage_;
};

/// The error that `f` throws; a test failure when it throws none.
template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::database, "nothing was thrown");
}

}  // namespace postrider::mariadb
