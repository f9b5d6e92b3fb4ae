// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "postrider/error.hpp"

struct sqlite3;

namespace postrider::sqlite {

/// The connection's last failure as our Error. `what` is what was being done.
[[nodiscard]] Error to_error(sqlite3* db, std::string_view what);
/// The same for a failed COMMIT. After an input/output error nobody knows whether the commit record reached
/// the disk.
[[nodiscard]] Error to_commit_error(sqlite3* db, std::string_view what);
/// Why the file could not be opened, found by looking at it and at its directory. `detail` is SQLite's own
/// word, `cause` the operating system's error number, or 0.
[[nodiscard]] Error to_open_error(const std::string& name, const std::string& path, std::string_view detail,
                                  int code, int cause);

}  // namespace postrider::sqlite
