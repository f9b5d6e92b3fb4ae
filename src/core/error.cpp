// SPDX-License-Identifier: Apache-2.0
#include "postrider/error.hpp"

#include <utility>

namespace postrider {
namespace {

std::string sentence(std::string_view what, std::string_view why, std::string_view hint) {
  std::string text = "postrider: ";
  text += what;
  if (!why.empty()) (text += ": ") += why;
  if (!hint.empty()) (text += ". Hint: ") += hint;
  return text;
}

}  // namespace

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_in_transaction:
      return "not_in_transaction";
    case ErrorCode::wrong_storage:
      return "wrong_storage";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::conflict:
      return "conflict";
    case ErrorCode::contention:
      return "contention";
    case ErrorCode::storage_full:
      return "storage_full";
    case ErrorCode::schema:
      return "schema";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::hook_failed:
      return "hook_failed";
    case ErrorCode::closed:
      return "closed";
    case ErrorCode::database:
      return "database";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string_view what, std::string_view why, std::string_view hint)
    : Error(code, Facts{}, what, why, hint) {}

Error::Error(ErrorCode code, Facts facts, std::string_view what, std::string_view why, std::string_view hint)
    : std::runtime_error(sentence(what, why, hint)), code_(code), facts_(std::move(facts)) {}

}  // namespace postrider
