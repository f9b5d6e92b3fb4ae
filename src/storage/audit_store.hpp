// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/clock.hpp"

namespace postrider {

enum class AuditId : std::int64_t {};

/// A change that somebody made to the system, as opposed to events that went through it.
struct AuditEntry {
  static constexpr std::size_t who_chars = 64;
  static constexpr std::size_t what_chars = 2000;

  AuditId id{};    ///< given by `append`
  TimePoint at{};  ///< given by `append`: the database's clock
  std::string who{};
  std::string what{};
};

struct AuditQuery {
  std::optional<std::string> who{};
  std::optional<TimePoint> from{};   ///< inclusive
  std::optional<TimePoint> until{};  ///< exclusive
  std::optional<AuditId> before{};   ///< the last one of the page before
  std::size_t limit = 100;
};

/// The table audit. Thread-safe. Nothing in the program removes an entry, or changes one but by `extend`.
class AuditStore {
 public:
  virtual ~AuditStore() = default;

  /// All or nothing, durable when it returns. Texts are cut at their bounds, on a character boundary; bytes
  /// that are no UTF-8 become U+FFFD: a strange name must not keep a change from being written down.
  virtual void append(std::span<const AuditEntry> entries) = 0;
  /// For a change that is made in pieces: the newest entry of `who` that says `what` says `more` from now on;
  /// its time stays. False when there is none. Durable when it returns; texts are cut as by `append`.
  virtual bool extend(std::string_view who, std::string_view what, std::string_view more) = 0;
  /// Newest first.
  virtual std::vector<AuditEntry> list(const AuditQuery& query) = 0;
};

}  // namespace postrider
