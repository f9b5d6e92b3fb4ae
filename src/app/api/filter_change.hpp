// SPDX-License-Identifier: Apache-2.0
// Verbs that change whatever a filter finds: {"filter": …, "dryRun": …}, and to cancel a "reason".
#pragma once

#include <array>
#include <boost/json.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "app/api/json_values.hpp"
#include "app/api/members.hpp"
#include "app/api/routes.hpp"

namespace postrider::api {

struct FilterChange {
  std::string_view verb;  ///< "cancel"
  std::string_view of;    ///< "events of the queue"
  /// Stands before the caller's name where he gives no reason. Empty: no reason is taken.
  std::string_view reason_by{};
};

/// `read` makes a filter of the body, `run(filter, reason, dry_run)` returns how many events there were. What
/// was changed is audited. `more(filter)`, asked before, has further members of the answer.
template <class Read, class Run, class More>
http::Response change_by_filter(Call& call, const FilterChange& change, Read read, Run run, More more) {
  constexpr std::array<std::string_view, 3> known{"filter", "dryRun", "reason"};
  const bool has_reason = !change.reason_by.empty();
  const std::span<const std::string_view> members = has_reason ? std::span(known) : std::span(known).first(2);
  const boost::json::object object = json_body(call.request, members);
  const Members body(object, members);
  const auto filter = read(body);
  const bool dry_run = body.flag("dryRun").value_or(false);
  std::string reason;
  if (has_reason) reason = body.text("reason").value_or(std::string(change.reason_by) + call.caller.name);
  const std::string verb(change.verb);
  const std::string what = " " + std::string(change.of) + ", " + boost::json::serialize(object);
  if (!dry_run) call.tried = verb + what;
  boost::json::object answer = more(filter);
  const std::int64_t events = run(filter, reason, dry_run);
  if (!dry_run && events > 0) call.done = verb + " " + std::to_string(events) + what;
  answer["dryRun"] = dry_run;
  answer["events"] = events;
  return json_response(answer);
}

}  // namespace postrider::api
