// SPDX-License-Identifier: Apache-2.0
#include "publishers/nats/message_id.hpp"

#define XXH_INLINE_ALL  // a header is all that is needed then: no library to link
#include <xxhash.h>

#include <cstdint>
#include <initializer_list>

#include "postrider/cloud_events.hpp"

namespace postrider::nats {
namespace {

void append_hex(std::string& out, std::uint64_t number) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (unsigned shift = 64; shift != 0;) {
    shift -= 4;
    out += digits[number >> shift & 15U];
  }
}

}  // namespace

std::string message_id(const SinkMessage& message, std::string_view subject) {
  const Event& event = *message.event;
  const std::string_view kind = event.payload_kind() == PayloadKind::json ? "json" : "bytes";
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const std::string_view part : {subject, message.topic, kind, event.payload(), event.headers_json()}) {
    const std::uint64_t size = part.size();  // or the end of one could be the beginning of the next
    XXH3_128bits_update(&state, &size, sizeof size);
    XXH3_128bits_update(&state, part.data(), part.size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  std::string id = cloud_events_header_value(event.id().view()) + "-";
  append_hex(id, hash.high64);
  append_hex(id, hash.low64);
  return id;
}

}  // namespace postrider::nats
