// SPDX-License-Identifier: Apache-2.0
#include "storage/stream_flush.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "postrider/error.hpp"
#include "storage/stream_rows.hpp"

namespace postrider {
namespace {

bool concerns_all(const Error& error) {
  switch (error.code()) {
    case ErrorCode::unavailable:
    case ErrorCode::timeout:
    case ErrorCode::contention:
    case ErrorCode::storage_full:
    case ErrorCode::schema:
    case ErrorCode::closed:
      return true;
    default:
      return error.retryable() || error.in_doubt() || error.connection_lost();
  }
}

/// Nothing can stand behind such a place: the condition would hold whatever was appended since its owner
/// read.
std::exception_ptr beyond_head(std::int64_t after, std::int64_t head) {
  return std::make_exception_ptr(
      Error(ErrorCode::invalid_argument, "cannot append to the event store",
            "the condition's after is " + std::to_string(after) + ", and the store's last position is " +
                std::to_string(head) + ", so that the condition would guard nothing",
            "read again and decide again; if this position was read here, an older copy of the database has "
            "been restored since"));
}

}  // namespace

std::int32_t NewStreamRow::size() const noexcept {
  return static_cast<std::int32_t>(event->payload().size() + event->headers_json().size() + tags.size());
}

std::int64_t after_of(const AppendCondition& condition) noexcept {
  return static_cast<std::int64_t>(condition.after.value_or(Position{0}));
}

StreamFlush::StreamFlush(std::span<const AppendRequest> requests, const StreamKeys& keys)
    : requests_(requests),
      keys_(keys),
      groups_(requests.size()),
      conflicts_(requests.size(), false),
      verdicts_(requests.size()) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const AppendCondition* const condition = requests[i].condition;
    if (condition == nullptr || condition->query.is_all()) continue;
    groups_[i] = keys_.of_query(condition->query);
    for (const KeyGroup& group : groups_[i]) {
      probes_.push_back({.hashes = &group,
                         .after = after_of(*condition),
                         .until = std::numeric_limits<std::int64_t>::max(),
                         .request = i});
    }
  }
}

void StreamFlush::found(std::size_t probe, std::int64_t position, std::string_view type,
                        std::string_view tags) {
  StreamProbe asked = probes_[probe];
  std::string name(type);
  if (requests_[asked.request].condition->query.matches(name, decode_tags(tags))) {
    conflicts_[asked.request] = true;
    verdicts_[asked.request] = Conflict{.position = Position{position}, .type = std::move(name)};
    return;
  }
  asked.until = position - 1;
  again_.push_back(asked);
}

bool StreamFlush::next_round() {
  std::erase_if(again_, [&](const StreamProbe& probe) { return conflicts_[probe.request]; });
  probes_ = std::exchange(again_, {});
  return !probes_.empty();
}

void StreamFlush::decide(const StreamHead& head) {
  last_ = head.position;
  std::size_t last_conditional = 0;  // one behind it
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i].condition != nullptr) last_conditional = i + 1;
  }
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (conflicts_[i]) continue;
    const AppendRequest& request = requests_[i];
    if (request.events.empty()) {
      verdicts_[i] = std::make_exception_ptr(
          Error(ErrorCode::invalid_argument, "cannot append", "the list of events is empty"));
      continue;
    }
    if (request.condition != nullptr && after_of(*request.condition) > last_) {
      verdicts_[i] = beyond_head(after_of(*request.condition), last_);
      continue;
    }
    if (const NewStreamRow* const in_the_way = conflict_here(i)) {
      verdicts_[i] = Conflict{.position = Position{in_the_way->position}, .type = in_the_way->event->type()};
      continue;
    }
    if (request.condition != nullptr && request.condition->query.is_all() && rows_.empty() &&
        head.position > after_of(*request.condition)) {
      verdicts_[i] = Conflict{.position = Position{head.position}, .type = head.type};
      continue;
    }
    accept(i, i + 1 < last_conditional);
  }
}

const NewStreamRow* StreamFlush::conflict_here(std::size_t request) const {
  const AppendCondition* const condition = requests_[request].condition;
  if (condition == nullptr || rows_.empty()) return nullptr;
  const std::int64_t after = after_of(*condition);
  if (condition->query.is_all()) return rows_.back().position > after ? &rows_.back() : nullptr;
  for (const KeyGroup& group : groups_[request]) {
    const std::vector<std::size_t>* fewest = nullptr;
    for (const std::int64_t hash : group) {
      const auto places = by_hash_.find(hash);
      if (places == by_hash_.end()) {
        fewest = nullptr;
        break;
      }
      if (fewest == nullptr || places->second.size() < fewest->size()) fewest = &places->second;
    }
    if (fewest == nullptr) continue;
    const auto hit = std::find_if(fewest->rbegin(), fewest->rend(), [&](std::size_t place) {
      const NewStreamRow& row = rows_[place];
      return row.position > after && condition->query.matches(row.event->type(), row.append->tags());
    });
    if (hit != fewest->rend()) return &rows_[*hit];
  }
  return nullptr;
}

void StreamFlush::accept(std::size_t request, bool remember) {
  const std::int64_t first = last_ + 1;
  for (const AppendEvent& event : requests_[request].events) {
    rows_.push_back({.position = ++last_,
                     .event = &event.event(),
                     .append = &event,
                     .tags = encode_tags(event.tags()),
                     .hashes = keys_.of_event(event.event().type(), event.tags())});
    if (!remember) continue;
    for (const std::int64_t hash : rows_.back().hashes) by_hash_[hash].push_back(rows_.size() - 1);
  }
  verdicts_[request] = Appended{.first = Position{first}, .last = Position{last_}};
}

namespace {

using Flush = std::function<std::vector<AppendVerdict>(std::span<const AppendRequest>)>;

/// Appends the verdicts to `verdicts`.
void flush_part(std::span<const AppendRequest> requests, const Flush& flush,
                std::vector<AppendVerdict>& verdicts) {
  try {
    std::vector<AppendVerdict> part = flush(requests);
    std::move(part.begin(), part.end(), std::back_inserter(verdicts));
    return;
  } catch (const Error& error) {
    if (concerns_all(error)) throw;
    if (requests.size() == 1) {
      verdicts.emplace_back(std::current_exception());
      return;
    }
  }
  const std::size_t half = requests.size() / 2;
  flush_part(requests.first(half), flush, verdicts);
  flush_part(requests.subspan(half), flush, verdicts);
}

}  // namespace

std::vector<AppendVerdict> flush_or_part(std::span<const AppendRequest> requests, const Flush& flush) {
  std::vector<AppendVerdict> verdicts;
  if (requests.empty()) return verdicts;
  verdicts.reserve(requests.size());
  try {
    flush_part(requests, flush, verdicts);
  } catch (const Error&) {
    const bool nothing_written = std::none_of(verdicts.begin(), verdicts.end(), [](const AppendVerdict& one) {
      return std::holds_alternative<Appended>(one);
    });
    if (nothing_written) throw;
    verdicts.resize(requests.size(), std::current_exception());
  }
  return verdicts;
}

Error append_timeout() {
  return {ErrorCode::timeout,
          {.retryable = true},
          "cannot append to the event store",
          "another transaction has appended and was not ended in time",
          "append last in transactions and commit soon, or raise StorageOptions::acquire_timeout"};
}

}  // namespace postrider
