// SPDX-License-Identifier: Apache-2.0
// What of a configuration can be judged without a database: what cannot be used of it, and why.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/api/token_file.hpp"
#include "app/config/daemon_config.hpp"
#include "app/daemon/daemon.hpp"
#include "app/http/listen_address.hpp"
#include "postrider/storage.hpp"

namespace postrider::daemon {

// Each throws Error that names the option and the line that it stands in.
[[nodiscard]] http::ListenAddress listen_address(const config::DaemonConfig& config);
/// Opened, not connected.
[[nodiscard]] std::unique_ptr<Storage> open_storage(const config::DaemonConfig& config,
                                                    const LogCallback& log);
/// None when there is no file of them.
[[nodiscard]] std::vector<api::TokenRecord> tokens_of(const config::DaemonConfig& config);

/// Whether opening the database would make its file.
[[nodiscard]] bool would_make_file(const std::string& url);

/// A daemon; or throws all that is to be said against its configuration, not only what it failed of first.
[[nodiscard]] std::unique_ptr<Daemon> make_daemon(const config::DaemonConfig& config, const LogCallback& log);

}  // namespace postrider::daemon
