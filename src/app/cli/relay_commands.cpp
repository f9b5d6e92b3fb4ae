// SPDX-License-Identifier: Apache-2.0
// postrider topics …, postrider leaders
#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <iostream>
#include <map>
#include <span>

#include "app/api/record_json.hpp"
#include "app/api/relay_api.hpp"
#include "app/cli/admin_options.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "postrider/relay_admin.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t letters_at_once = 1000;
constexpr std::size_t bytes_at_once = 4U << 20U;

struct PairOptionsOfCommand : AdminOptions {
  std::string topic{};
  std::string publisher{};
  std::int64_t position = 0;
  bool all = false;  // of those that change something
};

struct DeadLetterOptions : PairOptionsOfCommand {
  std::optional<std::int64_t> until{};
  std::int64_t after = 0;
  std::size_t limit = 100;
  bool dry_run = false;
};

PairSelector selector(const PairOptionsOfCommand& options) {
  PairSelector which;
  if (!options.topic.empty()) which.topic = options.topic;
  if (!options.publisher.empty()) which.publisher = options.publisher;
  return which;
}

/// For what changes pairs: all of them only by saying so.
PairSelector chosen_pairs(const PairOptionsOfCommand& options) {
  if (options.topic.empty() && options.publisher.empty() && !options.all) {
    throw Error(ErrorCode::invalid_argument, "cannot tell which pairs are meant", "there is no filter",
                "name some (--topic, --publisher), or say --all");
  }
  return selector(options);
}

int print_pairs(Storage& storage, const PairOptionsOfCommand& options) {
  Table table({{"topic", "TOPIC"},
               {"publisher", "PUBLISHER"},
               {"status", "STATUS"},
               {.name = "lastPosition", .title = "POSITION", .right = true, .spare = 2},
               {"lagEvents", "LAG", true},
               {.name = "lagSeconds", .title = "SECONDS", .right = true, .spare = 3},
               {.name = "errorCount", .title = "ERRORS", .right = true, .spare = 4},
               {.name = "deadLetters", .title = "DEAD", .right = true, .spare = 1},
               {.name = "leader", .title = "LEADER", .cut = true, .spare = 5},
               {.name = "lastError", .title = "LAST ERROR", .cut = true}});
  for (const PairStatus& pair : RelayAdmin(storage).list(selector(options))) table.add(api::pair_json(pair));
  table.print(std::cout, options.format,
              options.topic.empty() && options.publisher.empty()
                  ? "There are no pairs yet: a relay makes them when it starts."
                  : "There is no such pair: postrider topics list shows all.",
              colour_wanted());
  return 0;
}

int print_leaders(Storage& storage, const AdminOptions& options) {
  Table table({{.name = "lease", .title = "LEASE", .cut = true},
               {.name = "node", .title = "NODE", .cut = true},
               {"alive", "ALIVE"},
               {"pairs", "PAIRS", true},
               {.name = "epoch", .title = "EPOCH", .right = true, .spare = 2},
               {.name = "since", .title = "SINCE", .spare = 3},
               {.name = "heartbeat", .title = "HEARTBEAT", .spare = 1}});
  const RelayAdmin admin(storage);
  for (const LeaderStatus& leader : admin.leaders()) table.add(api::leader_json(leader));
  for (const StandbyStatus& standby : admin.standbys()) {
    json::object row = api::standby_json(standby);
    row["lease"] = nullptr;  // so it leads nothing
    row["alive"] = true;
    row["pairs"] = 0;
    row["epoch"] = nullptr;
    table.add(std::move(row));
  }
  table.print(std::cout, options.format, "Nobody leads: no relay runs.", colour_wanted());
  return 0;
}

/// As many reads as their size demands, mostly one.
std::map<Position, StoredEvent> all_events_of(Storage& storage, std::span<const DeadLetter> letters) {
  std::map<Position, StoredEvent> all;
  std::vector<DeadLetter> left(letters.begin(), letters.end());
  while (!left.empty()) {
    api::LetterEvents found = api::events_of(storage, left, bytes_at_once);
    all.merge(found.events);
    std::erase_if(left, [&](const DeadLetter& letter) { return letter.position <= found.until; });
  }
  return all;
}

int print_dead(Storage& storage, const DeadLetterOptions& options) {
  Table table({{"topic", "TOPIC"},
               {"publisher", "PUBLISHER"},
               {"position", "POSITION", true},
               {.name = "type", .title = "TYPE", .cut = true},
               {"id", "ID"},
               {.name = "failedAt", .title = "FAILED", .spare = 1},
               {.name = "error", .title = "ERROR", .cut = true}});
  const std::vector<DeadLetter> letters =
      RelayAdmin(storage).dead_letters(selector(options), options.limit, Position{options.after});
  for (std::span<const DeadLetter> left = letters; !left.empty();) {
    const auto chunk = left.first(std::min(left.size(), letters_at_once));
    left = left.subspan(chunk.size());
    const std::map<Position, StoredEvent> events = all_events_of(storage, chunk);
    for (const DeadLetter& letter : chunk) {
      const auto found = events.find(letter.position);
      const std::optional<StoredEvent> event =
          found == events.end() ? std::nullopt : std::optional(found->second);
      json::object row = api::dead_letter_json(letter, event);
      if (options.format == Format::table) {
        row["type"] = event ? api::shown(event->type()) : json::value("(removed)");
        row["id"] = event ? json::value(event->id().view()) : json::value(nullptr);
      }
      table.add(std::move(row));
    }
  }
  table.print(std::cout, options.format, "There are no dead letters of the relay.", colour_wanted());
  return 0;
}

/// A name that no pair has is mostly a typing error. Their dead letters may outlive pairs.
void require_pair(const RelayAdmin& admin, const DeadLetterOptions& options) {
  const PairSelector all = selector(options);
  if (options.topic.empty() && options.publisher.empty()) return;
  if (!admin.list(all).empty() || admin.count_dead_letters(all) > 0) return;
  throw Error(ErrorCode::invalid_argument,
              "there is no pair" + (options.topic.empty() ? "" : " of topic '" + options.topic + "'") +
                  (options.publisher.empty() ? "" : " of publisher '" + options.publisher + "'"),
              "no relay with it was ever started", "see which there are: postrider topics list");
}

int discard_dead(Storage& storage, const DeadLetterOptions& options, Change& change) {
  if (options.topic.empty() && options.publisher.empty() && !options.until && !options.all) {
    throw Error(ErrorCode::invalid_argument, "cannot tell which dead letters are meant", "there is no filter",
                "name some (--topic, --publisher, --until), or say --all");
  }
  RelayAdmin admin(storage);
  std::optional<Position> until;
  if (options.until) until = Position{*options.until};
  require_pair(admin, options);
  change.begin();
  const std::size_t events = options.dry_run ? admin.count_dead_letters(selector(options), until)
                                             : admin.discard_dead_letters(selector(options), until);
  change.done(static_cast<std::int64_t>(events));
  if (options.format == Format::json) {
    std::cout << json::serialize(json::object{{"dryRun", options.dry_run}, {"events", events}}) << '\n';
  } else {
    std::cout << "postrider: " << counted(events, "dead letter")
              << (options.dry_run ? " would be discarded\n" : " discarded; the events stay in the store\n");
  }
  return 0;
}

CLI::App& add_pair_command(CLI::App& group, const char* name, const char* help,
                           const std::shared_ptr<PairOptionsOfCommand>& options) {
  CLI::App& command = *group.add_subcommand(name, help);
  command.add_option("--topic", options->topic, "Of this topic; without it, of all");
  command.add_option("--publisher", options->publisher, "Of this publisher; without it, of all");
  return command;
}

void add_dead_commands(CLI::App& topics, Chosen& chosen) {
  {
    auto options = std::make_shared<DeadLetterOptions>();
    CLI::App& dead = add_pair_command(topics, "dead", "Events that a publisher did not take", options);
    dead.add_option("--limit", options->limit, "At most so many")
        ->check(between(1, 100'000))
        ->capture_default_str();
    dead.add_option("--after", options->after, "Behind this position")
        ->type_name("POSITION")
        ->check(not_negative());
    when_chosen_on_storage(dead, chosen, options, print_dead);
  }
  auto options = std::make_shared<DeadLetterOptions>();
  CLI::App& discard =
      add_pair_command(topics, "discard", "Forget dead letters; the events stay in the store", options);
  discard.add_option("--until", options->until, "Up to this position")
      ->type_name("POSITION")
      ->check(not_negative());
  discard.add_flag("--all", options->all, "All of them");
  discard.add_flag("--dry-run", options->dry_run, "Only count them");
  when_chosen_to_change(discard, chosen, options, discard_dead);
}

}  // namespace

void add_relay_commands(CLI::App& app, Chosen& chosen) {
  CLI::App& topics = add_group(app, "topics", "Topics, publishers, and how far they are");
  {
    auto options = std::make_shared<PairOptionsOfCommand>();
    when_chosen_on_storage(add_pair_command(topics, "list", "All pairs of topic and publisher", options),
                           chosen, options, print_pairs);
  }
  using Verb = std::size_t (RelayAdmin::*)(const PairSelector&);
  struct Entry {
    const char* name;
    const char* help;
    Verb verb;
  };
  for (const Entry& entry :
       std::array<Entry, 3>{{{"pause", "Stop after the batch that is under way", &RelayAdmin::pause},
                             {"resume", "Go on, also after FAILED", &RelayAdmin::resume},
                             {"reset", "Forget errors, end pauses after them", &RelayAdmin::reset}}}) {
    auto options = std::make_shared<PairOptionsOfCommand>();
    CLI::App& command = add_pair_command(topics, entry.name, entry.help, options);
    command.add_flag("--all", options->all, "All pairs");
    when_chosen_to_change(command, chosen, options,
                          [verb = entry.verb](Storage& storage, const PairOptionsOfCommand& given) {
                            (RelayAdmin(storage).*verb)(chosen_pairs(given));
                            return print_pairs(storage, given);
                          });
  }
  auto options = std::make_shared<PairOptionsOfCommand>();
  CLI::App& rewind = add_pair_command(topics, "rewind", "Publish next what is behind a position", options);
  rewind.add_option("--to,--position", options->position, "The position; 0 is the beginning")
      ->required()
      ->check(not_negative());
  rewind.add_flag("--all", options->all, "All pairs");
  when_chosen_to_change(rewind, chosen, options, [](Storage& storage, const PairOptionsOfCommand& given) {
    RelayAdmin(storage).move_to(chosen_pairs(given), Position{given.position});
    return print_pairs(storage, given);
  });
  auto forgotten = std::make_shared<PairOptionsOfCommand>();
  CLI::App& forget =
      add_pair_command(topics, "forget", "Remove pairs that nobody shall publish any more", forgotten);
  forget.add_flag("--all", forgotten->all, "All pairs");
  when_chosen_to_change(forget, chosen, forgotten,
                        [](Storage& storage, const PairOptionsOfCommand& given, Change& change) {
                          const PairSelector which = chosen_pairs(given);
                          change.begin();
                          const std::size_t pairs = RelayAdmin(storage).forget(which);
                          change.done(static_cast<std::int64_t>(pairs));
                          if (given.format == Format::json) {
                            std::cout << json::serialize(json::object{{"forgotten", pairs}}) << '\n';
                          } else {
                            std::cout << "postrider: " << counted(pairs, "pair") << " forgotten\n";
                          }
                          return 0;
                        });
  add_dead_commands(topics, chosen);
  when_chosen_on_storage(*app.add_subcommand("leaders", "Which nodes live, and what they lead"), chosen,
                         std::make_shared<AdminOptions>(), print_leaders);
}

}  // namespace postrider::cli
