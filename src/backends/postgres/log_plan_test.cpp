// SPDX-License-Identifier: Apache-2.0
// What projections ask all the time must not walk the log.
#include <gtest/gtest.h>

#include "storage/log_store.hpp"
#include "support/backend.hpp"

namespace postrider::postgres {
namespace {

class LogPlan : public test::BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, LogPlan, ::testing::Values("postgres"),
                         [](const auto& chosen) { return chosen.param; });

TEST_P(LogPlan, ReadingOnAndTheHeadUseTheIndexOfNumbers) {
  test::TestDatabase database(backend());
  const std::string log = database.table("event_log");
  Transaction tx = database.storage().begin();
  tx.execute(
      "insert into " + log +
      " (id, seq, token, event_id, event_type, payload, status, priority, attempts, crashes, created_at, "
      "occurred_at, finalized_at) select n, n, 1, 'e' || n, 'T', '{}', 2, 0, 1, 0, now(), now(), now() from "
      "generate_series(1, 20000) as n");
  tx.commit();
  for (const std::string& sql :
       {"select * from " + log + " where seq > 10 order by seq limit 100",
        "select * from " + log + " where seq > 10 and seq <= 10010 and status in (3) order by seq limit 100",
        "select max(seq) from (select seq from " + log + " where seq > 10 order by seq limit 10000) as ahead",
        "select max(seq) from " + log}) {
    for (const bool analysed : {false, true}) {
      if (analysed) {
        Transaction analyse = database.storage().begin();
        analyse.execute("analyze " + log);
        analyse.commit();
      }
      Transaction explain = database.storage().begin();
      const Rows plan = explain.execute("explain " + sql);
      std::string text;
      for (std::size_t i = 0; i < plan.size(); ++i) text += plan.text(i, 0) + "\n";
      EXPECT_NE(text.find("event_log_seq"), std::string::npos) << sql << "\n" << text;
      EXPECT_EQ(text.find("Seq Scan"), std::string::npos) << sql << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace postrider::postgres
