// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/errors.hpp"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "storage/migrator.hpp"

namespace postrider::sqlite {
namespace {

constexpr std::string_view full_hint = "free some space; everything goes on by itself then";
constexpr std::string_view disk_hint = "check the disk and the kernel log";
// A file that may not grow is one of these; SQLite does not keep EFBIG for us when a commit fails.
constexpr std::string_view write_hint =
    "check the disk, the kernel log and the limit of this process for the size of a file (ulimit -f)";

bool is_full(sqlite3* db, int primary) {
  if (primary == SQLITE_FULL) return true;
  if (primary != SQLITE_IOERR && primary != SQLITE_CANTOPEN) return false;
  const int cause = sqlite3_system_errno(db);
  return cause == ENOSPC || cause == EDQUOT;
}

Error classify(sqlite3* db, std::string_view what, bool committing) {
  const int extended = sqlite3_extended_errcode(db);
  const int primary = extended & 0xff;
  const std::string why = sqlite3_errmsg(db);
  const bool in_doubt = committing && primary == SQLITE_IOERR;
  if (is_full(db, primary)) {
    return {ErrorCode::storage_full, {.retryable = true, .in_doubt = in_doubt}, what, why, full_hint};
  }
  switch (primary) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::contention,
              {.retryable = true},
              what,
              why,
              "another connection holds the write lock; keep its transactions short, or raise "
              "sqlite_busy_timeout (on an adopted connection: sqlite3_busy_timeout)"};
    case SQLITE_CONSTRAINT:
      if (extended == SQLITE_CONSTRAINT_UNIQUE || extended == SQLITE_CONSTRAINT_PRIMARYKEY ||
          extended == SQLITE_CONSTRAINT_ROWID) {
        return {ErrorCode::conflict, what, why};
      }
      return {ErrorCode::database, what, why};
    case SQLITE_ERROR:
      if (why.find("no such module: fts5") != std::string::npos) {
        return {ErrorCode::unsupported, what, "this SQLite was built without FTS5, the index of words",
                "link a libsqlite3 that has it (SQLITE_ENABLE_FTS5), as Debian's does"};
      }
      if (names_our_table(why)) return {ErrorCode::schema, what, why, migrate_hint};
      return {ErrorCode::database, what, why};
    case SQLITE_IOERR:
      return {ErrorCode::unavailable,
              {.retryable = true, .in_doubt = in_doubt, .connection_lost = true},
              what,
              why,
              extended == SQLITE_IOERR_WRITE ? write_hint : disk_hint};
    case SQLITE_CANTOPEN:
      return {ErrorCode::unavailable,
              {.retryable = true, .connection_lost = true},
              what,
              why,
              "check that the file and its directory still exist and may be written"};
    case SQLITE_READONLY:
      return {ErrorCode::unavailable,
              {.connection_lost = true},
              what,
              why,
              "check that the file, its directory and its file system may be written"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {ErrorCode::database, {.connection_lost = true}, what, why, "restore the file from a backup"};
    default:
      return {ErrorCode::database, what, why};
  }
}

}  // namespace

Error to_error(sqlite3* db, std::string_view what) {
  return classify(db, what, false);
}

Error to_commit_error(sqlite3* db, std::string_view what) {
  return classify(db, what, true);
}

Error to_open_error(const std::string& name, const std::string& path, std::string_view detail, int code,
                    int cause) {
  const std::string what = "cannot open " + name;
  std::error_code ignored;  // a question that cannot be answered leaves SQLite's own word
  const std::filesystem::path file(path);
  // Whole: which folder a relative path means depends on who says it.
  const std::filesystem::path whole = std::filesystem::absolute(file, ignored);
  const std::filesystem::path folder = (whole.empty() ? file : whole).parent_path();
  const std::string directory = "directory " + folder.string();
  const int primary = code & 0xff;
  if (primary == SQLITE_NOTADB || primary == SQLITE_CORRUPT) {
    return {ErrorCode::database, what, detail, "choose another path, or restore the file from a backup"};
  }
  if (primary == SQLITE_BUSY) {
    return {ErrorCode::contention,
            {.retryable = true},
            what,
            detail,
            "another process holds the file's lock: try again"};
  }
  if (!std::filesystem::exists(folder, ignored)) {
    return {ErrorCode::unavailable, what, directory + " does not exist",
            "create it first: mkdir -p " + folder.string()};
  }
  if (!std::filesystem::is_directory(folder, ignored)) {
    return {ErrorCode::unavailable, what, folder.string() + " is not a directory", "choose another path"};
  }
  if (std::filesystem::is_directory(file, ignored)) {
    return {ErrorCode::unavailable, what, path + " is a directory", "name a file inside it"};
  }
  if (::eaccess(folder.c_str(), W_OK | X_OK) != 0) {
    return {ErrorCode::unavailable, what, directory + " is not writable",
            "choose another path or chmod u+w it"};
  }
  if (std::filesystem::exists(file, ignored) && ::eaccess(file.c_str(), R_OK | W_OK) != 0) {
    return {ErrorCode::unavailable, what, "file " + path + " is not writable",
            "choose another path or chmod u+rw it"};
  }
  // The permissions say yes and still it fails: root on /proc, a file system that is mounted for reading, no
  // file handles left.
  if (primary == SQLITE_CANTOPEN && !std::filesystem::exists(file, ignored)) {
    const bool passes = cause == EMFILE || cause == ENFILE || cause == ENOMEM;
    const std::string why = cause != 0 ? std::generic_category().message(cause) : std::string(detail);
    return {ErrorCode::unavailable,
            {.retryable = passes},
            what,
            "no file can be created in " + directory + " (" + why + ")",
            passes ? "close some files, or raise the limit: ulimit -n"
                   : "choose a path on a file system that can be written"};
  }
  return {ErrorCode::unavailable,
          {.retryable = true},
          what,
          detail,
          "check that the file and its directory can be read and written"};
}

}  // namespace postrider::sqlite
