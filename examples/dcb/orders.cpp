// SPDX-License-Identifier: Apache-2.0
#include "dcb.hpp"

namespace dcb {

using namespace postrider;

CommandOutcome Orders::place(const std::string& order, const std::string& idempotency_token) {
  return CommandExecutor(store_).execute([&](EventStore&) {
    const Tag token{"idempotency_token", idempotency_token};
    return CommandResult::idempotent_by({AppendEvent::builder("OrderPlaced").tag("order", order).tag(token)},
                                        token);
  });
}

}  // namespace dcb
