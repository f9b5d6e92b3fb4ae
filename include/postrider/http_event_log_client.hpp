// SPDX-License-Identifier: Apache-2.0
// Needs the component postrider::http (libcurl).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "postrider/event_log_client.hpp"

namespace postrider {

/// A token from an OAuth 2 server by client credentials. Fetched when first needed, and again before it ends.
struct OAuthOptions {
  std::string token_url{};  ///< empty: no OAuth
  std::string client_id{};
  std::string client_secret{};
  std::string scope{};
  /// How long before its end a token is fetched anew.
  Duration refresh_before = std::chrono::seconds{30};
};

struct HttpClientOptions {
  std::string base_url{};      ///< "https://eventlog.example.com"; http and https only
  std::string bearer_token{};  ///< sent as it is; or `oauth`
  OAuthOptions oauth{};
  Duration connect_timeout = std::chrono::seconds{3};
  Duration request_timeout = std::chrono::seconds{10};
  /// Bodies compressed; only for receivers that take it.
  bool gzip = false;
  std::string ca_file{};  ///< instead of the system's certificates
  std::vector<std::pair<std::string, std::string>> headers{};
  /// False: nothing is checked, and nothing is sent; each request counts as failed. For a logger that is
  /// switched off and has no `base_url`.
  bool enabled = true;
};

/// Posts to an Event Log API: one event to /v1/events, several to /v1/events/batch. Connections are kept.
/// Follows no redirects. Thread-safe; as many requests at the same time as threads call.
///
/// 400, 409 and 422 refuse an event for good; 413 asks for fewer at once; 429 for a pause. Everything else
/// but success is worth another try: also 401, 403 and 404, which speak of the set-up and not of the event,
/// and a peer whose certificate is not to be trusted. So is a 2xx whose body is no JSON object: a login page
/// at a wrong address has stored nothing. The logger keeps the events on disk then, and says why.
class HttpEventLogClient final : public EventLogClient {
 public:
  /// Throws Error(invalid_argument) for an option that cannot be.
  explicit HttpEventLogClient(HttpClientOptions options);
  ~HttpEventLogClient() override;

  [[nodiscard]] SendResult send(std::span<const OutgoingEvent> events) override;
  void cancel() noexcept override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace postrider
