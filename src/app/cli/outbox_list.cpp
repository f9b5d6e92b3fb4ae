// SPDX-License-Identifier: Apache-2.0
#include "app/cli/outbox_list.hpp"

#include <algorithm>
#include <iostream>
#include <map>

#include "app/api/record_json.hpp"
#include "app/cli/admin_options.hpp"
#include "core/age.hpp"
#include "storage/outbox_search_store.hpp"

namespace postrider::cli {
namespace {

enum class Which { all, pending, fresh, retry, done, dead };

struct ListOptions : AdminOptions {
  Which status = Which::all;
  std::string type{};
  std::string tenant{};
  std::string stuck_for{};
  std::size_t limit = 100;
};

OutboxSearch search_for(const ListOptions& options) {
  OutboxSearch search;
  switch (options.status) {
    case Which::pending:
      search.list = OutboxList::pending;
      break;
    case Which::fresh:
      search.list = OutboxList::pending;
      search.status = EventStatus::fresh;
      break;
    case Which::retry:
      search.list = OutboxList::pending;
      search.status = EventStatus::retry;
      break;
    case Which::done:
      search.list = OutboxList::done;
      break;
    case Which::dead:
      search.list = OutboxList::dead;
      break;
    case Which::all:
      break;
  }
  if (!options.stuck_for.empty()) {
    search.list = OutboxList::pending;
    search.rows = PendingRows{.filter = {.stuck_for = parse_age("--for", options.stuck_for)}};
  }
  if (!options.type.empty()) search.type = options.type;
  if (!options.tenant.empty()) search.tenant_id = options.tenant;
  return search;
}

int print_list(Storage& storage, const ListOptions& options) {
  constexpr std::size_t page_size = 1000;
  Table table({{"id", "ID"},
               {.name = "type", .title = "TYPE", .cut = true},
               {"status", "STATUS"},
               {.name = "attempts", .title = "FAILURES", .right = true, .spare = 1},
               {.name = "createdAt", .title = "PUBLISHED", .spare = 3},
               {.name = "availableAt", .title = "AVAILABLE", .spare = 4},
               {.name = "owner", .title = "NODE", .cut = true, .spare = 2},
               {.name = "leaseUntil", .title = "LEASED UNTIL", .spare = 5},
               {.name = "lastError", .title = "LAST ERROR", .cut = true}});
  OutboxSearch search = search_for(options);
  for (std::size_t left = options.limit; left > 0;) {
    search.limit = std::min(left, page_size);
    const OutboxPage page = storage.outbox_search_store().search(search);
    for (const OutboxRecord& record : page.records) table.add(api::brief_json(record));
    left -= page.records.size();
    if (!page.next) break;
    search.after = page.next;
  }
  table.print(std::cout, options.format, "There are none.", colour_wanted());
  return 0;
}

void add_limit(CLI::App& command, ListOptions& options) {
  command.add_option("--limit", options.limit, "At most so many")
      ->check(between(1, 100'000))
      ->capture_default_str();
}

}  // namespace

void add_outbox_list(CLI::App& outbox, Chosen& chosen) {
  auto options = std::make_shared<ListOptions>();
  CLI::App& command =
      *outbox.add_subcommand("list", "Which there are: by id, those that wait by when they are due");
  command
      .add_option("--status", options->status,
                  "PENDING (NEW and RETRY), NEW, RETRY, DONE or DEAD; without it all")
      ->type_name("STATUS")
      ->transform(one_of<Which>({{"PENDING", Which::pending},
                                 {"NEW", Which::fresh},
                                 {"RETRY", Which::retry},
                                 {"DONE", Which::done},
                                 {"DEAD", Which::dead}}));
  command.add_option("--type", options->type, "Of this type")->type_name("TYPE");
  command.add_option("--tenant", options->tenant, "Of this tenant")->type_name("ID");
  add_limit(command, *options);
  when_chosen_on_storage(command, chosen, options, print_list);

  options = std::make_shared<ListOptions>();
  options->stuck_for = "5m";
  CLI::App& stuck = *outbox.add_subcommand(
      "stuck", "What could have been delivered for long: a node does not end it, or nobody takes it");
  stuck.add_option("--for", options->stuck_for, "So long, or longer")
      ->type_name("AGE")
      ->capture_default_str();
  add_limit(stuck, *options);
  when_chosen_on_storage(stuck, chosen, options, print_list);
}

}  // namespace postrider::cli
