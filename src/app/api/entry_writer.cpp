// SPDX-License-Identifier: Apache-2.0
#include "app/api/entry_writer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/option_check.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"

namespace postrider::api {
namespace {

/// So long a failure counts, when no other attempt follows.
constexpr Duration failure_counts = std::chrono::seconds{10};

EntryWriterOptions checked(EntryWriterOptions options) {
  const OptionCheck check("EntryWriterOptions");
  check.count("queue_capacity", options.queue_capacity, 1, 100'000);
  check.count("transaction_entries", options.transaction_entries, 1, 100'000);
  options.log = guarded(std::move(options.log));
  if (options.clock == nullptr) options.clock = &Clock::system();
  return options;
}

/// It is the entries' fault: they would be refused again.
bool is_refusal(const Error& error) {
  if (error.retryable() || error.connection_lost() || error.in_doubt()) return false;
  return error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::database ||
         error.code() == ErrorCode::conflict;
}

}  // namespace

EntryWriter::EntryWriter(EntryStore& store, EntryWriterOptions options)
    : store_(store), options_(checked(std::move(options))), queue_(options_.queue_capacity) {
  thread_ = std::thread([this] { run(); });
}

bool EntryWriter::submit(std::vector<Entry> entries, Done done, Wanted wanted) {
  const std::size_t count = entries.size();
  unfinished_ += count;
  if (queue_.try_push({std::move(entries), std::move(done), std::move(wanted)})) return true;
  unfinished_ -= count;
  return false;
}

void EntryWriter::stop() {
  queue_.close();
  if (thread_.joinable()) thread_.join();
}

void EntryWriter::run() {
  std::vector<Call> calls;
  while (queue_.pop_batch(calls, options_.queue_capacity, Duration::zero())) {
    std::span<Call> rest = calls;
    while (!rest.empty()) {
      std::size_t count = 0;
      std::size_t entries = 0;
      for (; count < rest.size(); ++count) {
        const std::size_t more = rest[count].entries.size();
        if (count > 0 && entries + more > options_.transaction_entries) break;
        entries += more;
      }
      write(rest.first(count));
      unfinished_ -= entries;
      rest = rest.subspan(count);
    }
    calls.clear();
  }
}

void EntryWriter::write(std::span<Call> calls) {
  // Right before the transaction: the one before may have taken long.
  const auto unwanted = std::remove_if(calls.begin(), calls.end(),
                                       [](const Call& call) { return call.wanted && !call.wanted(); });
  calls = calls.first(static_cast<std::size_t>(unwanted - calls.begin()));
  if (calls.empty()) return;
  std::vector<Entry> all;
  std::vector<std::size_t> sizes;
  for (Call& call : calls) {
    sizes.push_back(call.entries.size());
    all.insert(all.end(), std::move_iterator(call.entries.begin()), std::move_iterator(call.entries.end()));
  }
  try {
    Outcomes outcomes(all.size());
    insert(all, outcomes);
    note(nullptr);
    auto next = std::move_iterator(outcomes.begin());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto end = next + static_cast<std::ptrdiff_t>(sizes[i]);
      calls[i].done(Outcomes(next, end));
      next = end;
    }
  } catch (const Error& error) {
    note(&error);
    for (const Call& call : calls) call.done(error);
  } catch (const std::exception& error) {
    const Error wrapped(ErrorCode::database, "cannot store event log entries", what_of(error));
    note(&wrapped);
    for (const Call& call : calls) call.done(wrapped);
  }
}

void EntryWriter::insert(std::span<const Entry> entries, std::span<Outcome> outcomes) {
  if (entries.empty()) return;
  try {
    const std::vector<InsertedEntry> inserted = store_.insert(entries);
    std::copy(inserted.begin(), inserted.end(), outcomes.begin());
    return;
  } catch (const Error& error) {
    if (!is_refusal(error)) throw;
    if (entries.size() == 1) {
      options_.log(LogLevel::warning, "postrider: an event log entry was refused: " + what_of(error));
      outcomes.front() = Refused{"the database refused it"};
      return;
    }
  }
  const std::size_t half = entries.size() / 2;
  insert(entries.first(half), outcomes.first(half));
  insert(entries.subspan(half), outcomes.subspan(half));
}

void EntryWriter::note(const Error* failure) {
  // The beginning and the end of an outage are told, not each of its thousand failures.
  if (failure != nullptr && !failing_) {
    options_.log(
        LogLevel::error,
        "postrider: event log entries cannot be stored, clients are told to try again: " + what_of(*failure));
  } else if (failure == nullptr && failing_) {
    options_.log(LogLevel::info, "postrider: event log entries are stored again");
  }
  failing_ = failure != nullptr;
  const SteadyPoint until = options_.clock->steady_now() + failure_counts;
  failing_until_ = failing_ ? until.time_since_epoch().count() : 0;
}

bool EntryWriter::failing() const noexcept {
  const std::int64_t until = failing_until_;
  return until != 0 && options_.clock->steady_now().time_since_epoch().count() < until;
}

}  // namespace postrider::api
