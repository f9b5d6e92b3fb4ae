// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace postrider::api {

/// docs/openapi.yaml, compiled in.
[[nodiscard]] std::string_view openapi_yaml();

}  // namespace postrider::api
