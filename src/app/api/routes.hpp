// SPDX-License-Identifier: Apache-2.0
// What the management API is made of: routes that say who may use them, and handlers that return an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/api/access.hpp"
#include "app/http/router.hpp"
#include "postrider/error.hpp"
#include "postrider/log.hpp"
#include "postrider/storage.hpp"

namespace postrider::api {

/// A change that several requests make, a piece each, under a name that the caller has chosen: the audit has
/// one entry of them, with the sum of their events.
struct AuditPiece {
  std::string action{};
  std::string verb{};  ///< "replay"
  std::int64_t events = 0;
  std::string of{};  ///< "dead letters, {…}"; the same of all pieces

  [[nodiscard]] std::string text(std::int64_t sum) const {
    return verb + " " + std::to_string(sum) + " " + of;
  }
};

/// One request on its way through a handler.
struct Call {
  const http::Request& request;
  Storage& storage;
  const Caller& caller;
  /// What the audit says was done, when the handler has changed something: "pause wallet-events/kafka".
  std::string done{};
  /// The same for what is done in several steps, set before the first: when an error ends it, the audit says
  /// that it was tried.
  std::string tried{};
  /// What `done` says, when it is a piece of a change.
  std::optional<AuditPiece> piece{};
};

/// What may be answered instead: the handler throws it.
struct Refusal {
  http::Problem problem;
};

struct ApiRoute {
  http::Method method = http::Method::get;
  std::string pattern{};
  Role role = Role::viewer;
  std::size_t body_limit = 0;
  /// May throw Refusal, and Error: then the answer says what the error says.
  std::function<http::Response(Call& call)> handler{};
  /// Instead: answers also while the database is not there yet.
  std::function<http::Response(const http::Request& request, const Caller& caller)> without_database{};
};

/// A change that somebody made.
struct AuditRecord {
  TimePoint at{};
  std::string who{};
  std::string what{};
  std::optional<AuditPiece> piece{};  ///< what `what` says, when more may follow
};

/// What the routes need from the program around them. All may be called from any thread.
struct ApiHost {
  Access* access = nullptr;
  /// Null while the database is not there yet, or known to be away.
  std::function<Storage*()> storage{};
  /// Whether it has been there.
  std::function<bool()> started{};
  /// Never throws.
  std::function<void(const AuditRecord&)> audit{};
  LogCallback log{};
  /// A request that changes something has failed at the database. Never throws; may be empty.
  std::function<void(const Error&)> write_failed{};
};

/// Adds them, each behind its role. `host` is copied; what it points to must live as long as the router is in
/// use.
void mount(http::Router& router, const std::vector<ApiRoute>& routes, const ApiHost& host);

/// An error as an answer: the caller's fault in full, the database's as 503, the rest as 500 with a word in
/// the log.
[[nodiscard]] http::Problem problem_of(const Error& error);
/// 503: there is no working yet, or no more.
[[nodiscard]] http::Problem not_ready(std::string why);
/// Whether the same request may succeed a moment later.
[[nodiscard]] bool may_pass(const Error& error) noexcept;

// For handlers. All throw Refusal.

/// The value of a parameter of the query, which is given once; nothing when it is not given.
[[nodiscard]] std::optional<std::string> query_value(const http::Request& request, std::string_view name);
/// A whole number within bounds, or `standard`.
[[nodiscard]] std::int64_t query_number(const http::Request& request, std::string_view name,
                                        std::int64_t standard, std::int64_t least, std::int64_t most);
[[nodiscard]] bool query_flag(const http::Request& request, std::string_view name);
/// Refuses parameters that are not among these, naming the nearest.
void only_parameters(const http::Request& request, std::span<const std::string_view> known);
[[noreturn]] void refuse_missing(std::string detail, std::string hint = {});
[[noreturn]] void refuse_invalid(std::string detail, std::string hint = {});

}  // namespace postrider::api
