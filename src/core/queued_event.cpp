// SPDX-License-Identifier: Apache-2.0
#include "postrider/queued_event.hpp"

namespace postrider {

std::string_view to_string(QueueStatus status) noexcept {
  switch (status) {
    case QueueStatus::pending:
      return "PENDING";
    case QueueStatus::processing:
      return "PROCESSING";
    case QueueStatus::completed:
      return "COMPLETED";
    case QueueStatus::completed_with_errors:
      return "COMPLETED_WITH_ERRORS";
    case QueueStatus::failed:
      return "FAILED";
  }
  return "unknown";
}

std::string_view to_string(HandlerVerdict verdict) noexcept {
  switch (verdict) {
    case HandlerVerdict::success:
      return "success";
    case HandlerVerdict::transient_error:
      return "transient error";
    case HandlerVerdict::unrecoverable_error:
      return "unrecoverable error";
  }
  return "unknown";
}

}  // namespace postrider
