// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/async_logger.hpp"

namespace postrider::logger {

/// With defaults filled in. Throws Error(invalid_argument) naming the option that is out of bounds.
[[nodiscard]] LoggerOptions checked(LoggerOptions options);

}  // namespace postrider::logger
