// SPDX-License-Identifier: Apache-2.0
#include "app/api/access.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

namespace postrider::api {
namespace {

std::string_view bearer_of(const http::Request& request) {
  constexpr std::string_view scheme = "Bearer ";
  const std::string_view header = request.header("Authorization");
  if (header.size() <= scheme.size() || !http::equal_ignoring_case(header.substr(0, scheme.size()), scheme))
    return {};
  return header.substr(scheme.size());
}

}  // namespace

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
  if (!tokens_) return {.caller = Caller{.name = "local", .role = Role::admin}};
  const std::string_view token = bearer_of(request);
  const http::Problem unknown{
      .status = 401,
      .code = "unauthorized",
      .detail = token.empty() ? "this needs a token" : "this token is not known, or its time is over",
      .hint =
          "send Authorization: Bearer <token>; one is made by: postrider token create -c postrider.toml "
          "--name NAME --role ROLE",
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
    return {.caller = Caller{record.name, record.role, record.sha256}};
  }
  return {.problem = unknown};
}

std::optional<http::Problem> Access::refusal(const http::Request& request, Role needed) const {
  Verdict verdict = decide(request, needed);
  if (verdict.caller) return std::nullopt;
  return std::move(verdict.problem);
}

bool Access::still_good(const Caller& caller, Role needed) const {
  const MutexLock lock(mutex_);
  if (!tokens_) return true;
  const auto found = std::find_if(tokens_->begin(), tokens_->end(),
                                  [&](const TokenRecord& one) { return one.sha256 == caller.sha256; });
  return found != tokens_->end() && found->role >= needed &&
         (!found->expires || *found->expires > clock_.now());
}

}  // namespace postrider::api
