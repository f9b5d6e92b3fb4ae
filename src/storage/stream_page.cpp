// SPDX-License-Identifier: Apache-2.0
#include "storage/stream_page.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace postrider {
namespace {

constexpr std::size_t most_rows = 10'000;
constexpr std::size_t most_bytes = 1U << 30U;
constexpr std::size_t first_chunk = 16;

std::int64_t bounded(std::size_t value, std::size_t most) {
  return static_cast<std::int64_t>(std::min(value, most));
}

}  // namespace

ReadRequest request_at(std::span<const Position> positions, std::size_t max_bytes) {
  ReadRequest request{.limit = positions.size(), .max_bytes = max_bytes};
  if (!positions.empty()) request.until = positions.back();
  return request;
}

StreamPage::StreamPage(const ReadRequest& request)
    : request_(request),
      all_(request.query == nullptr || request.query->is_all()),
      after_(std::max<std::int64_t>(static_cast<std::int64_t>(request.after), 0)),
      until_(static_cast<std::int64_t>(request.until)),
      limit_(bounded(request.limit, most_rows)),
      max_bytes_(std::max<std::int64_t>(bounded(request.max_bytes, most_bytes), 1)) {}

void StreamPage::add(const StreamColumns& columns, std::int64_t size) {
  ++rows_;
  bytes_ += size;
  last_ = columns.position;
  StoredEvent event = decode_stream_row(columns);
  if (all_ || request_.query->matches(event)) page_.events.push_back(std::move(event));
}

std::size_t StreamPage::next_chunk(std::size_t left) const noexcept {
  if (rows_ == 0) return std::min(left, first_chunk);
  const std::int64_t average = bytes_ / rows_ + 1;
  return std::min(left,
                  static_cast<std::size_t>(std::max<std::int64_t>(0, max_bytes_ - bytes_) / average) + 1);
}

ReadPage StreamPage::finish() && {
  // A limit of 0 asks for the head alone; nothing has been looked at then.
  page_.more = rows_ > 0 && full();
  if (page_.more) {
    page_.seen = Position{last_};
  } else if (limit_ == 0) {
    page_.seen = Position{
        request_.backwards ? std::min(until_, std::numeric_limits<std::int64_t>::max() - 1) + 1 : after_};
  } else if (request_.backwards) {
    page_.seen = Position{after_ + 1};
  } else {
    page_.seen = Position{std::max(after_, std::min(until_, static_cast<std::int64_t>(page_.head)))};
  }
  return std::move(page_);
}

}  // namespace postrider
