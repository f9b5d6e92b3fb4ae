// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/projection.hpp"

namespace postrider::demo {

/// How many of each item were sold, in the table shop_sales: a projection of the queue's log. The chapter
/// that makes the table runs it, and whoever lets the log grow afterwards.
void add_sales(ProjectionRunner& projections);

}  // namespace postrider::demo
