// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <iostream>

#include "app/api/json_values.hpp"
#include "app/cli/dead_filter.hpp"
#include "app/cli/event_input.hpp"
#include "app/cli/filter_options.hpp"
#include "app/cli/terminal.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

/// From so many on somebody at a terminal is asked first.
constexpr std::int64_t many = 100;
/// Of one call: so often the bar moves, and so soon an interrupt is heeded.
constexpr std::int64_t some = 10'000;

/// Never more than there were at first: what dies again meanwhile is not revived over and over.
Replayed replay(OutboxAdmin& admin, const DeadLetterFilter& filter, std::int64_t all, std::int64_t rate,
                Change& change) {
  change.begin();
  Progress progress("replaying");
  ReplayOptions options;
  if (rate > 0) options.rate = static_cast<std::int32_t>(rate);
  Replayed sum{.left = all};
  while (sum.events < all) {
    options.at_most = static_cast<std::size_t>(std::min(all - sum.events, some));
    const Replayed now = admin.replay_some(filter, options);
    sum.events += now.events;
    sum.left = now.left;
    sum.next_in = now.next_in;
    if (!change.go_on(sum.events)) break;
    if (now.events == 0) break;  // somebody else was quicker
    options.start_in = now.next_in;
    progress.show(sum.events, all);
  }
  change.done(sum.events);
  return sum;
}

NotFound not_dead(OutboxAdmin& admin, const DeadOptions& options) {
  NotFound missing{.place = "the dead letters",
                   .hint = "postrider outbox show ID says whether one is pending or done"};
  for (const std::string& id : options.ids) {
    if (admin.count_dead_letters({.ids = std::vector{EventId(id)}}) == 0) missing.add(id);
  }
  return missing;
}

void say(const DeadOptions& options, const Replayed& replayed, const NotFound& not_found) {
  const auto seconds = std::chrono::duration<double>(replayed.next_in).count();
  if (options.format == Format::json) {
    json::object answer{{"dryRun", options.dry_run},
                        {"events", replayed.events},
                        {"left", replayed.left},
                        {"seconds", seconds}};
    not_found.put_into(answer);
    std::cout << api::serialized(answer) << '\n';
    not_found.say();
    return;
  }
  std::cout << "postrider: " << counted(static_cast<std::size_t>(replayed.events), "dead letter")
            << (options.dry_run ? " would be delivered again" : " will be delivered again");
  if (seconds >= 1) std::cout << ", the last in " << static_cast<std::int64_t>(seconds) << " s";
  std::cout << '\n';
  not_found.say();
}

}  // namespace

void add_dead_filter(CLI::App& command, DeadOptions& options) {
  command.add_option("--id", options.ids, "This one; may be given several times")
      ->allow_extra_args(false)
      ->type_name("ID");
  command.add_option("--type", options.type, "Of this type")->type_name("TYPE");
  command.add_option("--aggregate", options.aggregate, "Order, or Order/42")->type_name("TYPE[/ID]");
  command.add_option("--tenant", options.tenant, "Of this tenant")->type_name("ID");
  command.add_option("--error", options.error, "With this text in their error")->type_name("TEXT");
  command.add_option("--after", options.after, "Dead since this time, or for at most so long: 1h")
      ->type_name("TIME|AGE");
  command.add_option("--before", options.before, "Dead before this time, or for so long: 7d")
      ->type_name("TIME|AGE");
}

DeadLetterFilter filter_of(const DeadOptions& options) {
  DeadLetterFilter filter;
  if (!options.ids.empty()) {
    std::vector<EventId> ids;
    for (const std::string& id : options.ids) ids.emplace_back(id);
    filter.ids = std::move(ids);
  }
  set_if_given(filter.type, options.type);
  set_if_given(filter.tenant_id, options.tenant);
  set_if_given(filter.error_contains, options.error);
  set_aggregate(filter, options.aggregate);
  filter.died_after = time_or_age("--after", options.after);
  filter.died_before = time_or_age("--before", options.before);
  return filter;
}

void require_choice(const DeadOptions& options) {
  const bool chosen = !options.ids.empty() || !options.type.empty() || !options.aggregate.empty() ||
                      !options.tenant.empty() || !options.error.empty() || !options.after.empty() ||
                      !options.before.empty();
  if (chosen || options.all) return;
  throw Error(ErrorCode::invalid_argument, "cannot tell which dead letters are meant", "there is no filter",
              "name some (--id, --type, --error …), or say --all");
}

int replay_dead(const DeadOptions& options, Change& change) {
  require_choice(options);
  const DeadLetterFilter filter = filter_of(options);
  const std::unique_ptr<Storage> storage = open_for(options);
  OutboxAdmin admin(*storage);
  const NotFound not_found = not_dead(admin, options);
  const std::int64_t all = admin.count_dead_letters(filter);
  if (options.dry_run) {
    say(options, {.events = all, .left = all}, not_found);
    return not_found.exit_code();
  }
  if (all >= many && !options.yes && can_ask() &&
      !ask("deliver " + std::to_string(all) + " dead letters again?")) {
    std::cerr << "postrider: nothing was done\n";
    return 1;
  }
  say(options, replay(admin, filter, all, options.rate, change), not_found);
  return not_found.exit_code();
}

}  // namespace postrider::cli
