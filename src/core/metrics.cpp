// SPDX-License-Identifier: Apache-2.0
#include "postrider/metrics.hpp"

namespace postrider {

MetricsExporter& MetricsExporter::none() noexcept {
  // Never destroyed: threads may still count while the program's statics go.
  static MetricsExporter* const silent = new MetricsExporter;
  return *silent;
}

}  // namespace postrider
