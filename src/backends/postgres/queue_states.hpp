// SPDX-License-Identifier: Apache-2.0
// How results of handlers become parameters.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/postgres/wire.hpp"
#include "postrider/queued_event.hpp"
#include "storage/row_decoder.hpp"

namespace postrider::postgres {

/// One result per handler, the last one of each: one statement cannot write a row twice.
[[nodiscard]] std::vector<const HandlerResult*> last_of_each_handler(std::span<const HandlerResult> results);

/// An element of an array of texts; none is NULL.
template <class Binder>
void bind_error(Binder& params, std::string_view error) {
  if (error.empty()) {
    params.element_null();
  } else {
    params.element(stored_error(error));
  }
}

/// Four arrays: handler, result, failed, error.
template <class Binder>
void bind_results(Binder& params, const std::vector<const HandlerResult*>& results) {
  params.begin_array(oid::text, results.size());
  for (const HandlerResult* r : results) params.element(r->handler);
  params.end_array();
  params.begin_array(oid::int2, results.size());
  for (const HandlerResult* r : results) params.element_int2(static_cast<std::int16_t>(r->verdict));
  params.end_array();
  params.begin_array(oid::int4, results.size());
  for (const HandlerResult* r : results) params.element_int4(static_cast<std::int32_t>(r->failed));
  params.end_array();
  params.begin_array(oid::text, results.size());
  for (const HandlerResult* r : results) bind_error(params, r->error);
  params.end_array();
}

}  // namespace postrider::postgres
