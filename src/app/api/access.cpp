// SPDX-License-Identifier: Apache-2.0
#include "app/api/access.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

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
              "lines are made by: postrider token create");
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

std::string_view bearer_of(const http::Request& request) {
  constexpr std::string_view scheme = "Bearer ";
  const std::string_view header = request.header("Authorization");
  if (header.size() <= scheme.size() || !http::equal_ignoring_case(header.substr(0, scheme.size()), scheme))
    return {};
  return header.substr(scheme.size());
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
  struct stat about {};
  std::ifstream file(path);
  if (!file.is_open() || ::stat(path.c_str(), &about) != 0) {
    throw Error(ErrorCode::unavailable, "cannot read the tokens in " + path,
                std::generic_category().message(errno), "make one: postrider token create --file " + path);
  }
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Error(ErrorCode::invalid_argument, path + " is refused", "others than its owner may write to it",
                "chmod 600 " + path);
  }
  std::vector<TokenRecord> records;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    records.push_back(parse_line(path, number, line));
  }
  return records;
}

void add_token(const std::string& path, const TokenRecord& record) {
  if (!is_name(record.name)) {
    throw Error(ErrorCode::invalid_argument, "cannot make a token for '" + record.name + "'",
                "a name has 1 to 64 printable characters without spaces and #");
  }
  if (::access(path.c_str(), F_OK) == 0) {
    for (const TokenRecord& other : read_tokens(path)) {
      if (other.name == record.name) {
        throw Error(ErrorCode::conflict, "cannot make a token for " + record.name,
                    "there is one of that name in " + path, "choose another name, or remove its line");
      }
    }
  }
  const std::string line = record.name + " " + std::string(to_string(record.role)) + " " + record.sha256 +
                           " " + (record.expires ? format_time(*record.expires) : "never") + "\n";
  const int file =
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  const bool written = file >= 0 &&
                       ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
                       ::fsync(file) == 0;
  const int reason = errno;
  if (file >= 0) ::close(file);
  if (!written) {
    throw Error(ErrorCode::unavailable, "cannot write to " + path, std::generic_category().message(reason));
  }
}

void Access::use(std::optional<std::vector<TokenRecord>> tokens) {
  const MutexLock lock(mutex_);
  tokens_ = std::move(tokens);
}

bool Access::needs_token() const {
  const MutexLock lock(mutex_);
  return tokens_.has_value();
}

Access::Verdict Access::decide(const http::Request& request, Role needed) const {
  const std::string_view site = request.header("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none") {
    return {.problem = {
                .status = 403, .code = "foreign-page", .detail = "a page of another site made this request"}};
  }
  const MutexLock lock(mutex_);
  if (!tokens_) return {.caller = Caller{"local", Role::admin}};
  const std::string_view token = bearer_of(request);
  const http::Problem unknown{
      .status = 401,
      .code = "unauthorized",
      .detail = token.empty() ? "this needs a token" : "this token is not known, or its time is over",
      .hint = "send Authorization: Bearer <token>; postrider token create makes one",
      .headers = {{"WWW-Authenticate", "Bearer"}}};
  if (token.empty()) return {.problem = unknown};
  const std::string hash = hash_of(token);
  for (const TokenRecord& record : *tokens_) {
    // In the same time whatever is equal, as one does with secrets.
    if (CRYPTO_memcmp(record.sha256.data(), hash.data(), hash.size()) != 0) continue;
    if (record.expires && *record.expires <= clock_.now()) return {.problem = unknown};
    if (record.role < needed) {
      return {.problem = {.status = 403,
                          .code = "forbidden",
                          .detail = "this needs the role " + std::string(to_string(needed)) +
                                    "; the token has " + std::string(to_string(record.role))}};
    }
    return {.caller = Caller{record.name, record.role}};
  }
  return {.problem = unknown};
}

}  // namespace postrider::api
