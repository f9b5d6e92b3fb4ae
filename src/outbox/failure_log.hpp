// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/event.hpp"
#include "postrider/listener.hpp"
#include "postrider/log.hpp"

namespace postrider {

/// Warns of attempts that fail, so that nobody learns of them from the dead letters alone: of a listener and
/// an event type the first failure, then one a minute at most, with a count of those left out. Of dead
/// letters it tells likewise, as errors and by type. Thread-safe. Remembers a bounded number of types; what
/// comes beyond is not logged.
class FailureLog {
 public:
  static constexpr std::size_t most_remembered = 1000;

  FailureLog(LogCallback log, Clock& clock);

  /// `listener` is any number that tells listeners apart.
  void failed(std::size_t listener, const Event& event, const Delivery& delivery,
              std::string_view reason) noexcept;
  void died(const Event& event, std::string_view error) noexcept;
  /// Once per type.
  void nobody_listens(std::string_view type) noexcept;

 private:
  struct Told {
    SteadyPoint next;
    std::size_t left_out = 0;
  };
  using Key = std::pair<std::size_t, std::string>;
  /// How many were left out before this one, or nothing: then this one is left out too.
  [[nodiscard]] std::optional<std::size_t> admit(Key key) POSTRIDER_EXCLUDES(mutex_);

  const LogCallback log_;
  Clock& clock_;
  Mutex mutex_;
  std::map<Key, Told> told_ POSTRIDER_GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> unheard_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider
