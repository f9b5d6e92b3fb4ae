// SPDX-License-Identifier: Apache-2.0
// postrider tail
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "app/cli/event_line.hpp"
#include "app/cli/follow.hpp"
#include "app/cli/outbox_tail.hpp"
#include "postrider/event_log.hpp"
#include "postrider/event_store.hpp"
#include "storage/wake_channel.hpp"

namespace postrider::cli {
namespace {

enum class Source { store, outbox, log };

struct TailOptions : AdminOptions {
  bool follow = false;
  Source source = Source::store;
  std::size_t lines = 10;
};

constexpr std::size_t tail_page = 200;

/// Events of the store: their positions are in commit order, so none is missed.
class StoreTail {
 public:
  StoreTail(const Database& database, const TailOptions& options)
      : store_(*database.storage), format_(options.format) {
    at_ = store_.head();
    if (at_ == Position{})
      std::cerr << "postrider: the event store is empty. Hint: --from outbox shows what 'postrider publish' "
                   "writes\n";
    if (options.lines == 0) return;
    std::vector<StoredEvent> newest;
    EventStream events = store_.read(Query::all(), {.limit = options.lines, .backwards = true});
    while (std::optional<StoredEvent> event = events.next()) newest.push_back(std::move(*event));
    at_ = events.head();
    std::for_each(newest.rbegin(), newest.rend(),
                  [&](const StoredEvent& event) { print_line(std::cout, format_, event); });
  }
  Found look() {
    EventStream events = store_.read(Query::all(), {.after = at_});
    Found found = Found::nothing;
    while (const std::optional<StoredEvent> event = events.next()) {
      print_line(std::cout, format_, *event);
      at_ = event->position();
      found = Found::some;
      if (!std::cout.good()) return Found::enough;
    }
    return found;
  }

 private:
  EventStore store_;
  const Format format_;
  Position at_{};
};

/// Finished events of the queue, in commit order as well. Numbers may be missing, so the first lines may be
/// fewer than asked for.
class LogTail {
 public:
  LogTail(const Database& database, const TailOptions& options)
      : log_(*database.storage), format_(options.format) {
    const auto head = static_cast<std::int64_t>(log_.head());
    at_ = LogSeq{std::max<std::int64_t>(0, head - static_cast<std::int64_t>(options.lines))};
    while (look() == Found::some) {
    }
  }
  Found look() {
    const LogPage page = log_.read(at_, tail_page);
    for (const LogEntry& entry : page.entries) print_line(std::cout, format_, entry);
    const bool moved = page.scanned_to != at_;
    at_ = page.scanned_to;
    return moved ? Found::some : Found::nothing;
  }

 private:
  EventLog log_;
  const Format format_;
  LogSeq at_{};
};

/// Events of the outbox, as `OutboxTail` finds them.
class PrintedOutbox {
 public:
  PrintedOutbox(const Database& database, const TailOptions& options)
      : tail_(database, {.lines = options.lines, .follow = options.follow},
              [format = options.format](const OutboxRecord& record) {
                print_line(std::cout, format, record);
                return std::cout.good();
              }) {}
  Found look() { return tail_.look() ? Found::some : Found::nothing; }

 private:
  OutboxTail tail_;
};

template <class Tail>
int run(const TailOptions& options, const Interrupts& interrupts, bool wakes) {
  const Database database = open_database(options);
  std::unique_ptr<WakeChannel::Subscription> subscription;
  WakeChannel* const channel = options.follow && wakes ? database.storage->wake_channel() : nullptr;
  if (channel != nullptr) {
    subscription = channel->listen(wake_topic::stream, [&interrupts] { interrupts.nudge(); });
  }
  Tail tail(database, options);
  std::cout.flush();
  return options.follow ? follow(interrupts, [&] { return tail.look(); }) : 0;
}

int run_tail(const TailOptions& options) {
  const Interrupts interrupts;  // before there are other threads
  switch (options.source) {
    case Source::outbox:
      return run<PrintedOutbox>(options, interrupts, false);
    case Source::log:
      return run<LogTail>(options, interrupts, false);
    case Source::store:
      break;
  }
  return run<StoreTail>(options, interrupts, true);
}

}  // namespace

void add_tail_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<TailOptions>();
  CLI::App& command = *app.add_subcommand("tail", "The newest events, a line for each");
  command.add_flag("-f,--follow", options->follow, "Go on with what comes, until Ctrl-C");
  command
      .add_option("--from", options->source,
                  "store, outbox (events whose ids are ULIDs, as they are unless you give others), or log "
                  "(finished events of the queue)")
      ->type_name("SOURCE")
      ->transform(
          one_of<Source>({{"store", Source::store}, {"outbox", Source::outbox}, {"log", Source::log}}));
  command.add_option("-n,--lines", options->lines, "So many of those that are there")
      ->check(between(0, 10'000))
      ->capture_default_str();
  add_admin_options(command, *options);
  when_chosen(command, chosen, options, run_tail);
}

}  // namespace postrider::cli
