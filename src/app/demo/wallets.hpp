// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "postrider/decision.hpp"
#include "postrider/event_store.hpp"

namespace postrider::demo {

inline constexpr int wallets = 5;
inline constexpr int opening = 100;

struct Tally {
  std::atomic<int> moved{0};
  std::atomic<int> refused{0};
  std::atomic<int> decided_again{0};  ///< after a conflict with another teller
};

using Balances = std::map<std::string, int>;

[[nodiscard]] std::string wallet(int number);
[[nodiscard]] Projector<Balances> balances_of(std::vector<std::string> ids);
void open_wallet(EventStore& store, int number);
/// Decides on what it has read; decides again when somebody was quicker.
void transfer(EventStore& store, int from, int to, int amount, Tally& tally);

}  // namespace postrider::demo
