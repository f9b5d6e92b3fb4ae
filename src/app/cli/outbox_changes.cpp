// SPDX-License-Identifier: Apache-2.0
#include "app/cli/outbox_changes.hpp"

#include "app/cli/filter_options.hpp"
#include "core/age.hpp"
#include "postrider/error.hpp"
#include "postrider/outbox_admin.hpp"

namespace postrider::cli {
namespace {

struct OutboxChangeOptions : FilterOptions {
  OutboxChangeOptions() { reason = "from the command line"; }
  std::vector<std::string> ids{};
  std::string aggregate{};
  std::string node{};

  [[nodiscard]] bool chosen() const {
    return FilterOptions::chosen() || !ids.empty() || !aggregate.empty() || !node.empty();
  }
};

EventStatus pending_status(const std::string& text) {
  for (const EventStatus status : {EventStatus::fresh, EventStatus::retry}) {
    if (text == to_string(status)) return status;
  }
  throw Error(ErrorCode::invalid_argument, "--status '" + text + "' is refused",
              "no pending event has such a status", "there are NEW and RETRY");
}

OutboxFilter filter_of(const OutboxChangeOptions& options) {
  OutboxFilter filter;
  for (const std::string& id : options.ids) filter.ids.push_back(EventId(id));
  if (!options.types.empty()) filter.types = options.types;
  for (const std::string& status : options.statuses) filter.statuses.push_back(pending_status(status));
  set_aggregate(filter, options.aggregate);
  set_if_given(filter.tenant_id, options.tenant);
  set_if_given(filter.owner, options.node);
  set_if_given(filter.error_contains, options.error);
  if (!options.older_than.empty()) filter.older_than = parse_age("--older-than", options.older_than);
  if (!options.stuck_for.empty()) filter.stuck_for = parse_age("--stuck-for", options.stuck_for);
  filter.attempts_at_least = options.attempts;
  if (options.delayed) filter.delayed = true;
  return filter;
}

void add_filter(CLI::App& command, OutboxChangeOptions& options) {
  command.add_option("--id", options.ids, "This one; may be given several times")
      ->allow_extra_args(false)
      ->type_name("ID");
  add_event_filter(command, options, {"NEW", "RETRY"}, "Published so long ago");
  command.add_option("--aggregate", options.aggregate, "Order, or Order/42")->type_name("TYPE[/ID]");
  command.add_option("--node", options.node, "That this node has")->type_name("NAME");
  command.add_option("--stuck-for", options.stuck_for, "Available for so long")->type_name("AGE");
  command.add_flag("--delayed", options.delayed, "Those that are due later");
}

NotFound not_pending(Storage& storage, const OutboxChangeOptions& options) {
  NotFound missing{.place = "the pending events of the outbox",
                   .hint = "postrider outbox show ID says whether one is done or dead"};
  OutboxAdmin admin(storage);
  for (const std::string& id : options.ids) {
    const std::optional<OutboxRecord> record = admin.find(EventId(id));
    const bool pending =
        record && (record->status == EventStatus::fresh || record->status == EventStatus::retry);
    if (!pending) missing.add(id);
  }
  return missing;
}

/// Whose steps are told.
OutboxAdmin stepping_outbox(Storage& storage, Change& change) {
  return OutboxAdmin(storage, [&change](std::int64_t events) { return change.go_on(events); });
}

}  // namespace

void add_outbox_changes(CLI::App& outbox, Chosen& chosen) {
  using Options = OutboxChangeOptions;
  add_filter_command<Options>(
      outbox, chosen,
      {"requeue", "Take events from their nodes, and end the wait for a retry", "put back into the outbox",
       "would be put back into the outbox", nullptr,
       "All of them, but not those that are due later (--delayed)"},
      add_filter, not_pending, [](Storage& storage, const Options& given, Change& change) {
        return stepping_outbox(storage, change).requeue(filter_of(given), given.dry_run);
      });
  add_filter_command<Options>(
      outbox, chosen,
      {"cancel", "Make pending events dead letters", "cancelled", "would be cancelled",
       "What their error says: cancelled: TEXT"},
      add_filter, not_pending, [](Storage& storage, const Options& given, Change& change) {
        return stepping_outbox(storage, change).cancel(filter_of(given), given.reason, given.dry_run);
      });
}

}  // namespace postrider::cli
