// SPDX-License-Identifier: Apache-2.0
#include "storage/settled_attempt.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

using Kind = Settlement::Kind;

TEST(SettledAttempt, IsOfWhatDidNotSimplySucceed) {
  EXPECT_EQ(failed_outcome({.kind = Kind::finalize}), std::nullopt);
  EXPECT_EQ(failed_outcome({.kind = Kind::release, .status = QueueStatus::failed}), std::nullopt);
  EXPECT_EQ(failed_outcome({.kind = Kind::retry}), AttemptOutcome::retry);
  EXPECT_EQ(failed_outcome({.kind = Kind::finalize, .status = QueueStatus::failed}), AttemptOutcome::failed);
  EXPECT_EQ(failed_outcome({.kind = Kind::finalize, .status = QueueStatus::completed_with_errors}),
            AttemptOutcome::completed_with_errors);
}

TEST(SettledAttempt, SaysTheErrorOrWhatTheHandlersSaid) {
  Settlement one{.status = QueueStatus::failed};
  EXPECT_EQ(settled_attempt(one, AttemptOutcome::failed).error, "");
  one.results = {{.handler = "fine"},
                 {.verdict = HandlerVerdict::unrecoverable_error, .error = "refused"},
                 {.handler = "fax", .verdict = HandlerVerdict::transient_error, .error = "busy"}};
  EXPECT_EQ(settled_attempt(one, AttemptOutcome::failed).error, "refused; fax: busy");
  one.error = "mail: gone";
  EXPECT_EQ(settled_attempt(one, AttemptOutcome::failed).error, "mail: gone");
}

}  // namespace
}  // namespace postrider
