// SPDX-License-Identifier: Apache-2.0
#include "app/demo/sales.hpp"

#include <string>

#include "app/demo/paid_order.hpp"

namespace postrider::demo {

void add_sales(ProjectionRunner& projections) {
  projections.add({.name = "sales", .types = {std::string(EventCodec<PaidOrder>::type)}},
                  [](Tx& tx, const LogEntry& entry) {
                    const auto order = EventCodec<PaidOrder>::from_json(entry.event->payload());
                    tx.execute(
                        "insert into shop_sales (item, sold) values (?, 1) "
                        "on conflict (item) do update set sold = sold + 1",
                        order.item);
                  });
}

}  // namespace postrider::demo
