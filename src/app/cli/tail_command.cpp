// SPDX-License-Identifier: Apache-2.0
// postrider tail
#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <map>
#include <set>

#include "app/cli/event_line.hpp"
#include "app/cli/follow.hpp"
#include "app/cli/inspector.hpp"
#include "postrider/event_log.hpp"
#include "postrider/event_store.hpp"
#include "postrider/outbox_admin.hpp"
#include "storage/sql_query.hpp"
#include "storage/wake_channel.hpp"

namespace postrider::cli {
namespace {

using namespace std::chrono_literals;

enum class Source { store, outbox, log };

struct TailOptions : AdminOptions {
  bool follow = false;
  Source source = Source::store;
  std::size_t lines = 10;
};

constexpr std::size_t tail_page = 200;
constexpr Duration tail_patience = 20s;

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

/// Rows of the outbox without payloads and headers; `rest` is what stands behind FROM.
std::vector<OutboxRecord> read_outbox(Inspector& inspector, const std::string& rest,
                                      std::span<const Value> params) {
  std::string sql =
      "select event_id, event_type, status, attempts, aggregate_type, aggregate_id, tenant_id, ordering_key, "
      "last_error, owner";
  for (const char* const time : {"occurred_at", "created_at", "available_at", "done_at"}) {
    sql += ", " + inspector.micros(time);
  }
  sql += " from " + inspector.table("outbox_event") + " " + rest;
  std::vector<OutboxRecord> records;
  for (const auto& row : inspector.select(sql, params).rows) {
    OutboxRecord& record = records.emplace_back();
    record.id = EventId(text(row[0]));
    record.type = text(row[1]);
    record.status = static_cast<EventStatus>(number(row[2]));
    record.attempts = static_cast<Attempt>(number(row[3]));
    record.aggregate_type = text(row[4]);
    record.aggregate_id = text(row[5]);
    record.tenant_id = text(row[6]);
    record.ordering_key = text(row[7]);
    record.last_error = text(row[8]);
    record.owner = text(row[9]);
    record.occurred_at = time_of(row[10]);
    record.created_at = time_of(row[11]);
    record.available_at = time_of(row[12]);
    if (row[13]) record.done_at = time_of(row[13]);
  }
  return records;
}

/// Events of the outbox by their ids, of which ULIDs begin with their time. A transaction may commit a while
/// after its events were made, so each look begins a minute back. Ids of other kinds are not seen.
class OutboxTail {
 public:
  OutboxTail(const Database& database, const TailOptions& options)
      : inspector_(database, tail_patience), format_(options.format) {
    const std::string end = prefix_of(Clock::system().now() + 1h);
    const std::array<Value, 1> params{Value(end)};
    std::vector<OutboxRecord> newest = read_outbox(
        inspector_, "where event_id < ? order by event_id desc limit " + std::to_string(options.lines),
        params);
    std::for_each(newest.rbegin(), newest.rend(), [&](const OutboxRecord& record) {
      print_line(std::cout, format_, record);
      seen_.insert(record.id);
    });
    if (!options.follow) return;
    // What was there before and was not asked for.
    each_recent([](const OutboxRecord& /*old*/) {});
  }
  Found look() {
    Found found = Found::nothing;
    each_recent([&](const OutboxRecord& record) {
      print_line(std::cout, format_, record);
      found = Found::some;
    });
    return found;
  }

 private:
  static constexpr Duration overlap = 60s;

  /// The ten characters that a ULID of this time begins with.
  static std::string prefix_of(TimePoint time) {
    constexpr std::string_view digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    auto left = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count());
    std::string text(10, '0');
    for (std::size_t i = text.size(); i-- > 0; left >>= 5U) text[i] = digits[left & 31U];
    return text;
  }
  template <class Use>
  void each_recent(const Use& use) {
    const TimePoint now = Clock::system().now();
    const std::string begin = prefix_of(now - overlap);
    const std::string end = prefix_of(now + 1h);
    std::string after = begin;
    for (;;) {
      const std::array<Value, 2> params{Value(after), Value(end)};
      const std::vector<OutboxRecord> page = read_outbox(
          inspector_,
          "where event_id > ? and event_id < ? order by event_id limit " + std::to_string(tail_page), params);
      for (const OutboxRecord& record : page) {
        if (seen_.insert(record.id).second) use(record);
      }
      if (page.size() < tail_page || !std::cout.good()) break;
      after = page.back().id.str();
    }
    // Those that no look will meet again.
    seen_.erase(seen_.begin(), seen_.lower_bound(EventId(begin)));
  }

  Inspector inspector_;
  const Format format_;
  std::set<EventId> seen_;
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
      return run<OutboxTail>(options, interrupts, false);
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
