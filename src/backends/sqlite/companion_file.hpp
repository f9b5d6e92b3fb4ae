// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace postrider::sqlite {

/// Opens a file beside the database to read and write it, and makes it when it is not there: like the
/// database (owner and rights), so that whoever may write that may write this one as well, also when root was
/// first. Throws Error(unavailable).
[[nodiscard]] int open_beside(const std::string& database, const std::string& suffix);

}  // namespace postrider::sqlite
