// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/demo/backstage.hpp"
#include "app/demo/stage.hpp"

namespace postrider::demo {

/// A gentle stream of events of all kinds, so that the dashboard has something to show. Until Ctrl-C.
void play_encore(Stage& stage, const Backstage& backstage);

}  // namespace postrider::demo
