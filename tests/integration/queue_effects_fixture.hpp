// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/failpoint.hpp"
#include "integration/queue_fixture.hpp"
#include "postrider/error.hpp"

namespace postrider {

/// With a table in which handlers leave their traces.
class QueueEffects : public QueueTest {
 protected:
  void TearDown() override {
    failpoints::clear();
    if (database_ != nullptr) run("drop table if exists " + effects());
  }
  std::string effects() { return database_->table("effects"); }
  void run(const std::string& sql) {
    Transaction tx = storage().begin();
    tx.execute(sql);
    tx.commit();
  }
  void open_with_effects() {
    open(true);
    run("create table " + effects() + " (name varchar(100))");
  }
  void leave(Tx& tx) { tx.execute("insert into " + effects() + " (name) values ('effect')"); }
  static void fail_once_at(const std::string& point) {
    failpoints::set(point, [point] {
      failpoints::set(point, {});
      throw Error(ErrorCode::unavailable, "made to fail");
    });
  }
  template <class Action>
  static ErrorCode code_of(Action action) {
    try {
      action();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::database;
  }
};

}  // namespace postrider
