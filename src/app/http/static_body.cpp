// SPDX-License-Identifier: Apache-2.0
#include "app/http/static_body.hpp"

// Header only.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstdio>
#include <memory>
#include <utility>

namespace postrider::http {
namespace {

std::string tag_of(const std::string& body) {
  const XXH128_hash_t hash = XXH3_128bits(body.data(), body.size());
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "\"%016llx%016llx\"", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

/// Whether a list of tags, weak ones too, has this one.
bool names(std::string_view list, std::string_view tag) {
  return list == "*" || list.find(tag) != std::string_view::npos;
}

}  // namespace

Handler static_body(std::string body, std::string content_type) {
  const std::string tag = tag_of(body);
  const auto kept = std::make_shared<const std::string>(std::move(body));
  return [kept, tag, type = std::move(content_type)](const Request& request, const Reply& reply) {
    Response response{.content_type = type, .headers = {{"ETag", tag}, {"Cache-Control", "no-cache"}}};
    if (names(request.header("If-None-Match"), tag)) {
      response.status = 304;
    } else {
      response.body = *kept;
    }
    reply(std::move(response));
  };
}

}  // namespace postrider::http
