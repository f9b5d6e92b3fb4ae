// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "backends/mariadb/tx_work.hpp"
#include "postrider/queued_event.hpp"
#include "storage/row_decoder.hpp"

namespace postrider::mariadb {

/// Parameters of QueueSql::save_state, row after row. Handlers' names are borrowed.
struct StateValues {
  static constexpr std::size_t columns = 6;
  std::vector<Value> values{};
  std::deque<std::string> errors{};  // borrowed by the values; a deque does not move them

  void add(std::int64_t id, const HandlerResult& result, const Value& now) {
    errors.push_back(stored_error(result.error));
    values.insert(values.end(),
                  {Value(id), Value(Blob{result.handler}), Value(static_cast<std::int64_t>(result.verdict)),
                   Value(static_cast<std::int64_t>(result.failed)), bytes_or_null(errors.back()), now});
  }
};

}  // namespace postrider::mariadb
