// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

namespace postrider::logger {

/// The processor's counter and the kernel's clock.
struct ProcessorTime {
  static constexpr std::int64_t billion = 1'000'000'000;

  /// Whether the kernel itself tells the time by the counter: then it runs evenly, and alike on all cores.
  [[nodiscard]] static bool is_even() noexcept;
  [[nodiscard]] static std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;  // `is_even` says no
#endif
  }
  /// Since 1970.
  [[nodiscard]] static std::int64_t nanoseconds() noexcept {
    std::timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * billion + now.tv_nsec;
  }
};

/// The time of the day for a thread that asks a million times a second: a look at the clock is half of what
/// `log()` costs, and the counter costs a third of a look. So the counter tells the time since the last look,
/// for a millisecond at most; how fast it runs is measured all the while, and believed when two measurements
/// agree. A clock that somebody sets is followed within that millisecond. Not synchronised.
template <class Source>
class CountedTime {
 public:
  /// Microseconds since 1970.
  [[nodiscard]] std::int64_t now() noexcept {
    const std::uint64_t passed = Source::ticks() - base_.ticks;
    if (passed >= horizon_) [[unlikely]]
      return look() / 1000;
    return (base_.time + static_cast<std::int64_t>(passed * scale_ >> fraction_bits)) / 1000;
  }

 private:
  struct Point {
    std::uint64_t ticks = 0;
    std::int64_t time = 0;
  };
  static constexpr unsigned fraction_bits = 32;
  static constexpr std::int64_t believed_for = 1'000'000;
  static constexpr std::int64_t shortest_measure = 10'000'000;
  static constexpr std::int64_t longest_measure = 1'000'000'000;
  // More between two readings of the counter, and something came between them.
  static constexpr std::uint64_t undisturbed = 20'000;

  [[gnu::noinline]] std::int64_t look() noexcept {
    const std::uint64_t before = Source::ticks();
    const std::int64_t time = Source::nanoseconds();
    const std::uint64_t took = Source::ticks() - before;
    horizon_ = 0;
    if (took > undisturbed) return time;
    base_ = {before + took / 2, time};
    measure();
    if (scale_ != 0) horizon_ = (std::uint64_t{believed_for} << fraction_bits) / scale_;
    return time;
  }

  /// Nanoseconds for a tick, from the last measurement's end to the base.
  void measure() noexcept {
    const std::int64_t time = base_.time - from_.time;
    const std::uint64_t ticks = base_.ticks - from_.ticks;
    if (time >= 0 && time < shortest_measure) return;
    from_ = base_;
    if (time < 0 || time > longest_measure || ticks == 0) return;
    const std::uint64_t measured = (static_cast<std::uint64_t>(time) << fraction_bits) / ticks;
    const std::uint64_t difference = measured > last_ ? measured - last_ : last_ - measured;
    scale_ = difference <= last_ / 1024 ? measured : 0;
    last_ = measured;
  }

  Point base_;                 // the last look
  std::uint64_t horizon_ = 0;  // in ticks from there
  std::uint64_t scale_ = 0;    // 0 while it is not known
  Point from_;
  std::uint64_t last_ = 0;  // measurement
};

}  // namespace postrider::logger
