// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>
#include <time.h>

typedef int64_t rd_ts_t;

/// Microseconds.
static inline rd_ts_t rd_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (rd_ts_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
