// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness.hpp"

namespace postrider::bench {

/// Prints <line>.<ring>.t<threads>.p50 and .p99, in nanoseconds, against spdlog's async logger.
void logger_call(Report& report, const std::string& line, bool mapped, int threads);
/// MB/s into the spill files against bare writes.
void logger_spill(Report& report, const std::string& line, bool group);
/// Lines/s of a replay into a client that takes everything, against a pass over the file.
void logger_replay(Report& report, const std::string& line);
/// Events/s of a replay to the real API over loopback, against a bare client that posts the same bodies.
void logger_replay_api(Report& report, const std::string& line);
/// Start-up with a large backlog, in ms; and memory while it is replayed, in MB.
void logger_backlog(Report& report, const std::string& line);
int logger_backlog_child(const std::string& folder, bool replay);

}  // namespace postrider::bench
