// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite_file.hpp"

#include "postrider/error.hpp"

namespace postrider {

std::string sqlite_file_of(std::string_view url) {
  const std::string what = "cannot open " + std::string(url);
  std::string_view path = url.substr(std::string_view("sqlite:").size());
  if (path.starts_with("//")) {
    path.remove_prefix(2);
    if (!path.starts_with('/')) {
      throw Error(ErrorCode::invalid_argument, what, "a file has no host",
                  "write sqlite:relative/path or sqlite:///absolute/path");
    }
  }
  if (path.empty())
    throw Error(ErrorCode::invalid_argument, what, "it names no file", "write sqlite:shop.db");
  if (path.starts_with(':')) {
    throw Error(ErrorCode::unsupported, what,
                "every connection would see a database of its own in memory, and events would not be durable",
                "name a file; one on /dev/shm is as fast");
  }
  if (path.starts_with("file:")) {
    throw Error(ErrorCode::invalid_argument, what, "SQLite's own file: URIs are not taken",
                "write sqlite: and the path, as in sqlite:shop.db");
  }
  if (path.find('?') != std::string_view::npos) {
    throw Error(ErrorCode::invalid_argument, what,
                "a sqlite: URL has no parameters, and a path no question mark",
                "set what you need in StorageOptions");
  }
  if (path == "~" || path.starts_with("~/")) {
    throw Error(ErrorCode::invalid_argument, what, "~ is known to shells only",
                "write the whole path of your home directory");
  }
  if (path.find('\0') != std::string_view::npos) {
    throw Error(ErrorCode::invalid_argument, "cannot open a sqlite: URL", "its path has a NUL byte");
  }
  return std::string(path);
}

}  // namespace postrider
