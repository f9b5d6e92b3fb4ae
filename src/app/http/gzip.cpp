// SPDX-License-Identifier: Apache-2.0
#include "app/http/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace postrider::http {
namespace {

constexpr std::size_t piece_bytes = 64U << 10U;

class Inflater {
 public:
  Inflater() {
    constexpr int gzip_only = 15 + 16;
    if (::inflateInit2(&stream_, gzip_only) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream* operator->() noexcept { return &stream_; }
  int step() noexcept { return ::inflate(&stream_, Z_NO_FLUSH); }
  void next_member() noexcept { ::inflateReset(&stream_); }

 private:
  z_stream stream_{};
};

}  // namespace

std::variant<std::string, UnpackFault> unpack_gzip(std::string_view packed, std::size_t limit,
                                                   const std::function<bool(std::size_t)>& grow) {
  if (packed.size() > std::numeric_limits<uInt>::max()) return UnpackFault::too_large;
  Inflater inflater;
  // zlib reads only; its interface is older than const.
  inflater->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  inflater->avail_in = static_cast<uInt>(packed.size());
  std::string out;
  std::size_t used = 0;
  for (;;) {
    if (used == out.size()) {
      // One byte beyond the limit tells a body that is just large enough from one that is too large.
      if (out.size() > limit) return UnpackFault::too_large;
      const std::size_t more = std::min(std::max(piece_bytes, out.size()), limit + 1 - out.size());
      if (!grow(more)) return UnpackFault::no_memory;
      out.resize(out.size() + more);
    }
    inflater->next_out = reinterpret_cast<Bytef*>(out.data() + used);
    inflater->avail_out = static_cast<uInt>(out.size() - used);
    const int result = inflater.step();
    used = out.size() - inflater->avail_out;
    if (used > limit) return UnpackFault::too_large;
    if (result == Z_STREAM_END) {
      if (inflater->avail_in == 0) break;
      inflater.next_member();
    } else if (result == Z_MEM_ERROR) {
      return UnpackFault::no_memory;
    } else if (result != Z_OK || (inflater->avail_in == 0 && inflater->avail_out > 0)) {
      return UnpackFault::damaged;
    }
  }
  out.resize(used);
  return out;
}

}  // namespace postrider::http
