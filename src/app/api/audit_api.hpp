// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "app/api/routes.hpp"

namespace postrider::api {

/// Who changed what, and when.
[[nodiscard]] std::vector<ApiRoute> audit_routes();

/// For ApiHost::audit: writes to the log, and to the database when there is one. A database that refuses is
/// told of in the log; what was done is done, and its answer is not held back. Pieces of one change are one
/// entry, which says after each how far it has come.
[[nodiscard]] std::function<void(const AuditRecord&)> audit_writer(std::function<Storage*()> storage,
                                                                   LogCallback log);

}  // namespace postrider::api
