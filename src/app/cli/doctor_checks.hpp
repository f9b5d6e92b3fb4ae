// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "app/cli/finding.hpp"
#include "app/cli/inspector.hpp"
#include "app/config/daemon_config.hpp"

namespace postrider::cli {

// Each adds what it has found out. What the database refuses to tell is skipped.

/// Version and tables. False when there is nothing to look at behind.
bool check_schema(const Database& database, Inspector& inspector, Findings& findings);
void check_clock(Inspector& inspector, Findings& findings);
void check_postgres(Inspector& inspector, Findings& findings);
void check_mariadb(Inspector& inspector, Findings& findings);
void check_sqlite(const Database& database, Inspector& inspector, Findings& findings);
/// The configuration itself, and the files that it names.
void check_files(const std::string& path, const config::DaemonConfig& config, Findings& findings);

}  // namespace postrider::cli
