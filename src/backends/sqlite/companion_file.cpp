// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/companion_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "postrider/error.hpp"

namespace postrider::sqlite {

int open_beside(const std::string& database, const std::string& suffix) {
  const std::string path = database + suffix;
  int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file >= 0) {
    struct stat about {};
    // What cannot be given away is ours.
    if (::stat(database.c_str(), &about) == 0 && ::fchown(file, about.st_uid, about.st_gid) == 0)
      (void)::fchmod(file, about.st_mode & 0666U);
    return file;
  }
  if (errno == EEXIST) file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file >= 0) return file;
  const int reason = errno;
  throw Error(ErrorCode::unavailable, Error::Facts{.retryable = true}, "cannot open " + path,
              std::generic_category().message(reason),
              reason == EACCES || reason == EROFS
                  ? "it, and the folder of the database, must be writable for the user that this runs as"
                  : "look at the folder of the database");
}

}  // namespace postrider::sqlite
