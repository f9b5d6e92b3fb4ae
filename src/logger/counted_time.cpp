// SPDX-License-Identifier: Apache-2.0
#include "logger/counted_time.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace postrider::logger {

bool ProcessorTime::is_even() noexcept {
#if defined(__x86_64__)
  const int file =
      ::open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, 16> name{};
  const ssize_t size = ::read(file, name.data(), name.size());
  ::close(file);
  return size > 0 && std::string_view(name.data(), static_cast<std::size_t>(size)) == "tsc\n";
#else
  return false;
#endif
}

}  // namespace postrider::logger
