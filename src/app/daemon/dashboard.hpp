// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "app/http/router.hpp"

namespace postrider::daemon {

/// A file of the dashboard, packed with gzip.
struct DashboardAsset {
  const char* path;  ///< "index.html", "app-0123456789ab.js"
  const char* content_type;
  const unsigned char* bytes;
  std::size_t size;
};

/// What web/ was built into; empty when this build has no dashboard.
[[nodiscard]] std::span<const DashboardAsset> dashboard_assets() noexcept;

/// / and /ui/…: the page, whatever the view; /assets/…: what it loads. Nothing when there is no dashboard.
/// The page and its parts say nothing about anybody's events, so they need no token; what they ask for does.
void add_dashboard_routes(http::Router& router);

}  // namespace postrider::daemon
