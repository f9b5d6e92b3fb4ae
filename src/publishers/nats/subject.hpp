// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/option_check.hpp"

namespace postrider::nats {

/// Refuses a template whose fixed parts could not stand in a subject: spaces, control characters, wildcards,
/// empty tokens, and a '$' at its beginning, which is the server's own. Also one that begins with a place,
/// because its stream would have to take everybody's subjects.
void check_subject(const OptionCheck& check, std::string_view subject);
/// Refuses what cannot be the name of a stream.
void check_stream(const OptionCheck& check, std::string_view stream);

/// Appends a value as one token: what cannot stand in one becomes '_'.
void append_token(std::string& out, std::string_view value);
/// What a stream must take for all subjects of a template: a token with a place in it becomes '*'.
[[nodiscard]] std::string subjects_of(std::string_view subject);

}  // namespace postrider::nats
