// SPDX-License-Identifier: Apache-2.0
// The benchmarks of the relay; docs/benchmarks.md says what each line means.
#pragma once

#include <postrider/postrider.hpp>

#include <string>

#include "harness.hpp"

namespace postrider::bench {

/// One pair catches up with half a million events; a publisher that does nothing. PostgreSQL.
void relay_throughput(Report& report, const std::string& line);
/// How often fifty pairs at the head of live appends read the database, against one.
void relay_shared_reads(Report& report, const std::string& line);
/// Ten thousand pairs with nothing to do; prints `line`.threads, .cpu and .memory.
void relay_pairs(Report& report, const std::string& line);
int relay_pairs_child(const std::string& url, const std::string& schema);
/// From the append's return to entering the publisher, same node.
void relay_latency(Report& report, const std::string& line);
/// One pair from an event store on SQLite to a real Kafka broker.
void relay_kafka(Report& report, const std::string& line);

}  // namespace postrider::bench
