// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>
#include <system_error>

#include "shop.hpp"

namespace shop {

Counters& Counters::map(const Place& place) {
  const int file = ::open(place.counters().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) throw std::system_error(errno, std::generic_category(), place.counters().string());
  // A file grown by ftruncate reads as zeros, which is what fresh counters are.
  if (::ftruncate(file, sizeof(Counters)) != 0) {
    ::close(file);
    throw std::system_error(errno, std::generic_category(), place.counters().string());
  }
  void* memory = ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  return *std::launder(static_cast<Counters*>(memory));
}

void Counters::observe(std::chrono::microseconds latency_of_one) noexcept {
  const auto micros = static_cast<std::uint64_t>(std::max<std::int64_t>(latency_of_one.count(), 1));
  const auto bucket = std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(micros)), buckets - 1);
  latency[bucket].fetch_add(1, std::memory_order_relaxed);
}

double Counters::median_latency() const noexcept {
  std::uint64_t total = 0;
  for (const auto& bucket : latency) total += bucket.load(std::memory_order_relaxed);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < buckets; ++i) {
    const std::uint64_t here = latency[i].load(std::memory_order_relaxed);
    if (here > 0 && below + here >= (total + 1) / 2) {
      // Somewhere inside [2^(i-1), 2^i): take the share of the bucket that lies below the middle.
      const double low = i == 0 ? 0.0 : static_cast<double>(std::uint64_t{1} << (i - 1));
      const double share = static_cast<double>((total + 1) / 2 - below) / static_cast<double>(here);
      return low + low * share;
    }
    below += here;
  }
  return 0.0;
}

}  // namespace shop
