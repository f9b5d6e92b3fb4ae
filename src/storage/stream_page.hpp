// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/stream_rows.hpp"
#include "storage/stream_store.hpp"

namespace postrider {

/// What StreamStore::read_at asks for, as far as a page is concerned.
[[nodiscard]] ReadRequest request_at(std::span<const Position> positions, std::size_t max_bytes);

/// Puts a page together from rows that a store has found, in the order of reading. Hits by hash alone are
/// dropped here.
class StreamPage {
 public:
  /// The request is borrowed.
  explicit StreamPage(const ReadRequest& request);

  [[nodiscard]] bool all() const noexcept { return all_; }
  // The request's numbers, within what databases take.
  [[nodiscard]] std::int64_t after() const noexcept { return after_; }
  [[nodiscard]] std::int64_t until() const noexcept { return until_; }
  [[nodiscard]] std::int64_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::int64_t max_bytes() const noexcept { return max_bytes_; }

  void set_head(std::int64_t head) noexcept { page_.head = Position{head}; }
  /// `size` is the row's column of that name.
  void add(const StreamColumns& columns, std::int64_t size);
  /// No more rows are wanted.
  [[nodiscard]] bool full() const noexcept { return rows_ >= limit_ || bytes_ >= max_bytes_; }

  /// How many rows of at most `left` to fetch at once, where all that is fetched is held in memory: by the
  /// average so far, and few at first.
  [[nodiscard]] std::size_t next_chunk(std::size_t left) const noexcept;

  [[nodiscard]] ReadPage finish() &&;

 private:
  const ReadRequest& request_;
  bool all_;
  std::int64_t after_;
  std::int64_t until_;
  std::int64_t limit_;
  std::int64_t max_bytes_;
  std::int64_t rows_ = 0;  // with those that were dropped
  std::int64_t bytes_ = 0;
  std::int64_t last_ = 0;  // the last row's position
  ReadPage page_;
};

}  // namespace postrider
