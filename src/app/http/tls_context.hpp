// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "app/http/transport.hpp"

namespace postrider::http {

/// For a server: TLS 1.2 and newer, with this certificate (a PEM file, with its chain) and key. Throws
/// Error(invalid_argument) for files that are none, or do not belong together.
[[nodiscard]] std::shared_ptr<Transport::TlsContext> make_tls_context(const std::string& certificate,
                                                                      const std::string& key);

}  // namespace postrider::http
