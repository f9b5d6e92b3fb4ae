// SPDX-License-Identifier: Apache-2.0
#include "app/api/token_file.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/nearest.hpp"
#include "core/rfc3339.hpp"
#include "postrider/error.hpp"

namespace postrider::api {
namespace {

constexpr std::string_view token_prefix = "prt_";
constexpr std::size_t hash_bytes = 32;
constexpr std::size_t longest_name = 64;

constexpr std::array<std::pair<std::string_view, Role>, 3> roles{
    {{"viewer", Role::viewer}, {"operator", Role::operator_}, {"admin", Role::admin}}};

std::string hex(const unsigned char* bytes, std::size_t size) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += digits[bytes[i] >> 4U];
    text += digits[bytes[i] & 15U];
  }
  return text;
}

bool is_hash(std::string_view text) {
  return text.size() == hash_bytes * 2 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= longest_name &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f && c != '#'; });
}

[[noreturn]] void refuse(const std::string& path, std::size_t line, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, path + ", line " + std::to_string(line) + " is refused", why,
              "lines are made by: postrider token create --file " + path + " --name NAME --role ROLE");
}

TokenRecord parse_line(const std::string& path, std::size_t number, const std::string& line) {
  std::istringstream words(line);
  std::string role;
  std::string expires;
  std::string more;
  TokenRecord record;
  if (!(words >> record.name >> role >> record.sha256 >> expires) || (words >> more)) {
    refuse(path, number, "it must have a name, a role, a hash and an expiry");
  }
  const std::optional<Role> known = role_of(role);
  if (!is_name(record.name)) refuse(path, number, "the name has other characters than printable ASCII");
  if (!known) refuse(path, number, "there is no role '" + role + "'");
  if (!is_hash(record.sha256)) refuse(path, number, "the hash is not 64 hexadecimal digits");
  record.role = *known;
  if (expires != "never") {
    record.expires = parse_time(expires);
    if (!record.expires) refuse(path, number, "the expiry is neither a time nor 'never'");
  }
  return record;
}

[[noreturn]] void refuse_file(const std::string& path, int reason) {
  if (reason == ELOOP) {
    throw Error(ErrorCode::invalid_argument, "cannot write to " + path, "it is a symbolic link",
                "name the file itself");
  }
  throw Error(ErrorCode::unavailable, "cannot write to " + path, std::generic_category().message(reason));
}

/// The file, while nobody else who asks for it changes it.
class LockedFile {
 public:
  LockedFile(const std::string& path, int flags) {
    for (;;) {
      file_ = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
      if (file_ < 0) refuse_file(path, errno);
      struct stat there {};
      const bool locked = ::flock(file_, LOCK_EX) == 0 && ::fstat(file_, &about_) == 0;
      const int reason = errno;
      // Whoever had it before may have put another in its place.
      const bool same = locked && ::lstat(path.c_str(), &there) == 0 && there.st_ino == about_.st_ino &&
                        there.st_dev == about_.st_dev;
      if (same) return;
      ::close(file_);
      if (!locked) refuse_file(path, reason);
    }
  }
  ~LockedFile() { ::close(file_); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  [[nodiscard]] int get() const noexcept { return file_; }
  [[nodiscard]] const struct stat& about() const noexcept { return about_; }

 private:
  int file_ = -1;
  struct stat about_ {};
};

bool write_durably(int file, const std::string& text) {
  return ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(file) == 0;
}

/// All or nothing, also when the power goes. The new file is its owner's, as the old one was: the daemon that
/// reads it need not be who changes it.
void replace_file(const std::string& path, const struct stat& about, const std::string& text) {
  std::string fresh = path + ".XXXXXX";
  const int file = ::mkostemp(fresh.data(), O_CLOEXEC);
  if (file < 0) refuse_file(fresh, errno);
  const bool done = write_durably(file, text) && ::fchown(file, about.st_uid, about.st_gid) == 0 &&
                    ::fchmod(file, about.st_mode & 07777U) == 0 && ::rename(fresh.c_str(), path.c_str()) == 0;
  const int reason = errno;
  ::close(file);
  if (!done) {
    ::unlink(fresh.c_str());
    refuse_file(path, reason);
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int entries = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool kept = entries >= 0 && ::fsync(entries) == 0;
  const int why = errno;
  if (entries >= 0) ::close(entries);
  if (!kept) refuse_file(path, why);
}

bool is_comment(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  return begin == std::string::npos || line[begin] == '#';
}

[[noreturn]] void refuse_to_read(const std::string& path, int reason) {
  throw Error(
      ErrorCode::unavailable, "cannot read the tokens in " + path, std::generic_category().message(reason),
      reason == EACCES ? "it belongs to whoever made it: chown it to the user that this program runs as"
                       : "make one: postrider token create --file " + path + " --name NAME --role ROLE");
}

/// All of the file. Half of it, or a folder's nothing, would lock out whoever has a token.
std::string text_in(const std::string& path) {
  // Whoever opens a pipe would wait for somebody to write into it.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) refuse_to_read(path, errno);
  struct stat about {};
  int reason = ::fstat(file, &about) == 0 ? 0 : errno;
  const bool regular = S_ISREG(about.st_mode);
  std::string text;
  std::array<char, 4096> part{};
  ssize_t size = 1;
  while (reason == 0 && regular && size > 0) {
    size = ::read(file, part.data(), part.size());
    if (size < 0) reason = errno;
    if (size > 0) text.append(part.data(), static_cast<std::size_t>(size));
  }
  ::close(file);
  if (reason != 0) refuse_to_read(path, reason);
  if (!regular) {
    throw Error(ErrorCode::invalid_argument, path + " is refused", "it is no regular file",
                "name the file that tokens are made in");
  }
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Error(ErrorCode::invalid_argument, path + " is refused", "others than its owner may write to it",
                "chmod 600 " + path);
  }
  return text;
}

std::vector<TokenRecord> parse_tokens(const std::string& path, const std::string& text) {
  std::istringstream lines(text);
  std::vector<TokenRecord> records;
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    if (is_comment(line)) continue;
    records.push_back(parse_line(path, number, line));
  }
  return records;
}

}  // namespace

std::string_view to_string(Role role) noexcept {
  return roles[static_cast<std::size_t>(role)].first;
}

std::optional<Role> role_of(std::string_view text) noexcept {
  const auto* const found =
      std::find_if(roles.begin(), roles.end(), [&](const auto& one) { return one.first == text; });
  return found == roles.end() ? std::nullopt : std::optional(found->second);
}

std::string make_token() {
  std::array<unsigned char, hash_bytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    throw Error(ErrorCode::unavailable, "cannot make a token", "the system has no random numbers");
  }
  return std::string(token_prefix) + hex(bytes.data(), bytes.size());
}

std::string hash_of(std::string_view token) {
  std::array<unsigned char, hash_bytes> digest{};
  unsigned size = 0;
  if (EVP_Digest(token.data(), token.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw Error(ErrorCode::unavailable, "cannot hash a token", "OpenSSL has no SHA-256");
  }
  return hex(digest.data(), digest.size());
}

std::vector<TokenRecord> read_tokens(const std::string& path) {
  return parse_tokens(path, text_in(path));
}

void add_token(const std::string& path, const TokenRecord& record) {
  if (!is_name(record.name)) {
    throw Error(ErrorCode::invalid_argument, "cannot make a token for '" + record.name + "'",
                "a name has 1 to 64 printable characters without spaces and #");
  }
  const LockedFile file(path, O_WRONLY | O_APPEND | O_CREAT);
  const std::string before = text_in(path);
  for (const TokenRecord& other : parse_tokens(path, before)) {
    if (other.name == record.name) {
      throw Error(ErrorCode::conflict, "cannot make a token for " + record.name,
                  "there is one of that name in " + path,
                  "choose another name, or end that one: postrider token revoke --file " + path + " --name " +
                      record.name);
    }
  }
  // An editor may have left the last line without its end: two tokens in one line would be none.
  const std::string end = before.empty() || before.back() == '\n' ? "" : "\n";
  const std::string line = end + record.name + " " + std::string(to_string(record.role)) + " " +
                           record.sha256 + " " + (record.expires ? format_time(*record.expires) : "never") +
                           "\n";
  if (!write_durably(file.get(), line)) refuse_file(path, errno);
}

TokenRecord remove_token(const std::string& path, std::string_view name) {
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0) {
    throw Error(ErrorCode::unavailable, "cannot read the tokens in " + path,
                std::generic_category().message(errno),
                "is it the file that tokens are made in, server.token-file?");
  }
  const LockedFile file(path, O_RDONLY);
  const std::string before = text_in(path);
  const std::vector<TokenRecord> all = parse_tokens(path, before);
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const TokenRecord& one) { return one.name == name; });
  if (found == all.end()) {
    std::vector<std::string_view> names;
    names.reserve(all.size());
    for (const TokenRecord& one : all) names.push_back(one.name);
    const std::string_view nearest = nearest_of(name, names);
    throw Error(ErrorCode::invalid_argument, "cannot revoke the token of '" + std::string(name) + "'",
                "there is none of that name in " + path,
                nearest.empty() ? "postrider token list --file " + path + " shows which there are"
                                : "did you mean " + std::string(nearest) + "?");
  }
  std::istringstream lines(before);
  std::string rest;
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string first;
    const bool is_it = !is_comment(line) && words >> first && first == name;
    if (!is_it) rest += line + "\n";
  }
  replace_file(path, file.about(), rest);
  return *found;
}

}  // namespace postrider::api
