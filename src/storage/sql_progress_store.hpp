// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "storage/progress_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

inline constexpr std::string_view progress_table = "outbox_topic_progress";
inline constexpr std::string_view dead_letter_table = "outbox_dead_letter";

/// The state's word in the table, and back. An unknown word, which the table does not allow, is `failed`.
[[nodiscard]] PairState pair_state(std::string_view word) noexcept;

/// ProgressStore for all three databases.
class SqlProgressStore final : public ProgressStore {
 public:
  explicit SqlProgressStore(SqlDialect dialect);

  std::size_t add(std::span<const NewPair> pairs) override;
  std::vector<LedPair> take(const LeaseFence& fence, Taking which, std::span<const PairName> pairs,
                            std::span<const std::string> dead) override;
  std::vector<LedPair> led(std::string_view node) override;
  void give_back(std::string_view node, std::span<const PairName> pairs) override;
  std::vector<bool> advance(std::span<const ProgressStep> steps) override;
  std::vector<bool> fail(std::span<const PairFailure> failures) override;
  PairCensus census(std::string_view node, std::span<const std::string> dead) override;

 private:
  [[nodiscard]] SqlQuery led_pairs(std::string_view node) const;
  SqlQuery& orphaned(SqlQuery& query, std::span<const std::string> dead) const;
  /// All in one statement, as only PostgreSQL can when it is to say which.
  void advance_together(std::span<const ProgressStep> steps, std::vector<bool>& done) const;
  [[nodiscard]] bool advance_one(Tx& tx, const ProgressStep& step) const;

  SqlDialect dialect_;
};

}  // namespace postrider
