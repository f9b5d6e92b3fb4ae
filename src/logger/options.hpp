// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/async_logger.hpp"

namespace postrider::logger {

/// The least and the most that an option may be.
template <class T>
struct Bounds {
  T least;
  T most;
};

/// Of LoggerOptions, for the constructor and for those who read files.
namespace bounds {
using namespace std::chrono_literals;
inline constexpr Duration day = 24h;
inline constexpr Bounds<std::size_t> queue_capacity{1, 10'000'000};
inline constexpr Bounds<int> max_retries{0, 100};
inline constexpr Bounds<Duration> base_retry_delay{1us, day};
inline constexpr Bounds<Duration> max_retry_delay{1us, day};
inline constexpr Bounds<int> circuit_breaker_threshold{1, 1000};
inline constexpr Bounds<Duration> circuit_breaker_reset{1ms, day};
inline constexpr Bounds<std::size_t> batch_size{1, 10'000};
inline constexpr Bounds<std::size_t> sender_threads{1, 64};
inline constexpr Bounds<Duration> max_batch_wait{0us, 1h};
inline constexpr Bounds<std::size_t> max_spillover_events{1, 1'000'000'000'000};
inline constexpr Bounds<std::size_t> max_spillover_bytes{4096, std::uint64_t{1} << 50U};
inline constexpr Bounds<Duration> fsync_interval{1ms, 1h};
inline constexpr Bounds<Duration> replay_interval{1ms, day};
inline constexpr Bounds<std::size_t> replay_batch_size{1, 10'000};
inline constexpr Bounds<std::size_t> replay_rate{0, 100'000'000};
inline constexpr Bounds<std::size_t> ring_bytes{64 * 1024, std::size_t{1} << 30U};
inline constexpr Bounds<Duration> block_timeout{0us, day};
inline constexpr Bounds<Duration> shutdown_timeout{0us, day};
inline constexpr Bounds<double> retry_budget{0, 10};
}  // namespace bounds

/// With defaults filled in. Throws Error(invalid_argument) naming the option that is out of bounds.
[[nodiscard]] LoggerOptions checked(LoggerOptions options);

}  // namespace postrider::logger
