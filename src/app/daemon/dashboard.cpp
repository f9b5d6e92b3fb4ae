// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/dashboard.hpp"

#include <string>
#include <string_view>
#include <variant>

#include "app/http/gzip.hpp"

namespace postrider::daemon {
namespace {

using http::Lane;
using http::Reply;
using http::Request;
using http::Response;

constexpr std::size_t largest_asset = 16U << 20U;
constexpr std::size_t deepest_view = 4;

bool takes_gzip(const Request& request) {
  return request.header("Accept-Encoding").find("gzip") != std::string_view::npos;
}

Response answer(const DashboardAsset& asset, const Request& request, bool for_ever) {
  const std::string packed(reinterpret_cast<const char*>(asset.bytes),
                           asset.size);  // NOLINT: bytes are bytes
  Response response{.content_type = asset.content_type};
  response.headers = {{"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Vary", "Accept-Encoding"},
                      {"Cache-Control", for_ever ? "public, max-age=31536000, immutable" : "no-cache"}};
  if (!for_ever) {
    response.headers.emplace_back(
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  }
  if (takes_gzip(request)) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.body = packed;
  } else {
    auto unpacked = http::unpack_gzip(packed, largest_asset, [](std::size_t) { return true; });
    if (auto* text = std::get_if<std::string>(&unpacked)) response.body = std::move(*text);
  }
  return response;
}

}  // namespace

void add_dashboard_routes(http::Router& router) {
  const std::span<const DashboardAsset> assets = dashboard_assets();
  if (assets.empty()) return;
  const DashboardAsset& page = assets.front();
  router.add({.pattern = "/", .lane = Lane::direct, .handler = [](const Request&, const Reply& reply) {
                reply({.status = 302, .headers = {{"Location", "/ui"}}});
              }});
  std::string pattern = "/ui";
  for (std::size_t depth = 0; depth <= deepest_view; ++depth) {
    router.add({.pattern = pattern,
                .lane = Lane::read,
                .handler = [&page](const Request& request, const Reply& reply) {
                  reply(answer(page, request, false));
                }});
    pattern += "/{part" + std::to_string(depth) + "}";
  }
  for (const DashboardAsset& asset : assets.subspan(1)) {
    router.add({.pattern = std::string("/assets/") + asset.path,
                .lane = Lane::read,
                .handler = [&asset](const Request& request, const Reply& reply) {
                  reply(answer(asset, request, true));
                }});
  }
}

}  // namespace postrider::daemon
