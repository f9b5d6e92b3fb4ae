// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "relay/tail.hpp"

namespace postrider {

/// Pages that pairs behind the tail will want next, read while the ones before them are published: a few for
/// each pair, and all of them together within a number of bytes. Without I/O; not synchronised.
///
/// A page is what stands behind a position, so it is right for whoever stands there, whatever happened since.
class ReadAhead {
 public:
  static constexpr std::size_t pages_per_pair = 2;

  struct Page {
    std::size_t pair = 0;
    Position after{};
    enum class State { wanted, reading, ready, dropped } state = State::wanted;
    Batch batch{};
  };
  using PagePtr = std::shared_ptr<Page>;
  /// One pair's, in order.
  struct Lane {
    std::vector<PagePtr> pages{};    // few; and nothing for the many pairs that have none
    std::optional<Position> next{};  ///< where the page behind them begins, when there is one
  };

  /// Each page counts as `page_bytes`.
  ReadAhead(std::size_t max_bytes, std::size_t page_bytes)
      : page_bytes_(page_bytes), max_pages_(max_bytes / page_bytes) {}

  /// The last page that was read, or is being read, for this pair ends here, and there is more. True when
  /// that is to be read now.
  bool expect(Lane& lane, std::size_t pair, Position after);
  /// What of a page could not be published yet. Where there is no room for it, it is read again.
  void put_back(Lane& lane, std::size_t pair, Position after, Batch rest);

  struct Taken {
    std::optional<Batch> page{};
    bool comes = false;  ///< is being read: `done` or `failed` will be called
  };
  /// The page behind `after`. What was read for another place, or nobody has begun to read, is dropped.
  [[nodiscard]] Taken take(Lane& lane, std::size_t pair, Position after);
  void drop(Lane& lane) noexcept;

  /// Nobody has begun with it, and somebody should.
  [[nodiscard]] bool wanted() const noexcept { return !wanted_.empty(); }
  /// The next to be read; null when there is none. Ends with `done` or `failed`.
  [[nodiscard]] PagePtr begin();
  void done(const PagePtr& page, Batch batch);
  void failed(Lane& lane, const PagePtr& page) noexcept;
  /// Whether this pair waits for that page.
  [[nodiscard]] static bool first(const Lane& lane, const PagePtr& page) noexcept {
    return !lane.pages.empty() && lane.pages.front() == page;
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return pages_ * page_bytes_; }

 private:
  bool want(Lane& lane, std::size_t pair);
  void let_go(Page& page) noexcept;

  const std::size_t page_bytes_;
  const std::size_t max_pages_;
  std::size_t pages_ = 0;
  std::deque<PagePtr> wanted_;
};

}  // namespace postrider
