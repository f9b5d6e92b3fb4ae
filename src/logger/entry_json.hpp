// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "logger/json_writer.hpp"
#include "postrider/clock.hpp"

namespace postrider::logger {

/// What an entry takes when it has not set it itself.
struct EntryDefaults {
  std::string application_id{};
  std::string originating_system{};
  std::string user_id{};
};

/// What `log()` gave to an entry beside its fields.
struct EntryStamp {
  TimePoint time{};
  std::string_view key{};  ///< plain: needs no escapes
};

/// Room that `write_members` wants.
[[nodiscard]] std::size_t members_room(std::string_view packed, const EntryStamp& stamp,
                                       const EntryDefaults& defaults) noexcept;
/// Writes what `append_members` appends. Returns its end; null when `packed` is damaged.
[[nodiscard]] char* write_members(char* out, std::string_view packed, const EntryStamp& stamp,
                                  const EntryDefaults& defaults, TimeWriter& times);

/// Appends the members of the entry's JSON object, without the braces around them and with the idempotency
/// key as the last one: `"applicationId":"x",…,"idempotencyKey":"…"`. False, and nothing appended, when
/// `packed` is damaged.
bool append_members(std::string& out, std::string_view packed, const EntryStamp& stamp,
                    const EntryDefaults& defaults);

/// A string in quotes. Control characters are escaped, so that it stays on one line; each byte that is no
/// valid UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// ISO 8601 in UTC: "2026-06-01T10:15:30.123Z", with six digits when there are microseconds.
void append_time(std::string& out, TimePoint time);

/// A member's name that an extra must not have.
[[nodiscard]] bool is_reserved_member(std::string_view name) noexcept;

}  // namespace postrider::logger
