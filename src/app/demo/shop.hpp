// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "app/demo/stage.hpp"
#include "postrider/outbox.hpp"
#include "postrider/storage.hpp"

namespace postrider::demo {

/// Takes orders, and has nobody to deliver their events: the daemon does. One thread.
class Shop {
 public:
  explicit Shop(Storage& storage);
  /// The business row and its event in one transaction. Some customers change their mind: a rollback.
  EventId take_order(bool changes_mind);

 private:
  Storage& storage_;
  Outbox outbox_;
  std::int64_t next_ = 0;
};

}  // namespace postrider::demo
