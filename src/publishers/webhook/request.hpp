// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "postrider/webhook_sink.hpp"
#include "publishers/webhook/signature.hpp"
#include "publishers/webhook/verdict.hpp"

namespace postrider {

/// One request at a time, again and again: keeps its handle and its memory. Stays where it is, since curl
/// knows its address.
class WebhookRequest {
 public:
  /// Both outlive it.
  WebhookRequest(const WebhookSinkOptions& options, const WebhookSigner& signer);
  WebhookRequest(const WebhookRequest&) = delete;
  WebhookRequest& operator=(const WebhookRequest&) = delete;

  /// Makes it ready to be added to a multi handle. What `message` points to must stay until it has ended.
  void prepare(const SinkMessage& message, TimePoint now);
  /// After it has ended.
  [[nodiscard]] WebhookVerdict judge(CURLcode code, TimePoint now) const;

  [[nodiscard]] CURL* handle() const noexcept { return handle_.get(); }

 private:
  struct Deleter {
    void operator()(CURL* handle) const noexcept { ::curl_easy_cleanup(handle); }
    void operator()(curl_slist* list) const noexcept { ::curl_slist_free_all(list); }
  };
  static std::size_t take_body(char* bytes, std::size_t, std::size_t count, void* self);
  static std::size_t take_header(char* bytes, std::size_t, std::size_t count, void* self);
  static curl_socket_t open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);

  void set_options_that_stay();
  void write_headers(TimePoint now);
  void header(std::string_view name, std::string_view value);
  [[nodiscard]] bool ours(std::string_view name) const;
  [[nodiscard]] std::string without_secrets(std::string text) const;
  [[nodiscard]] WebhookVerdict trouble(CURLcode code) const;

  const WebhookSinkOptions& options_;
  const WebhookSigner& signer_;
  std::unique_ptr<CURL, Deleter> handle_;
  std::unique_ptr<curl_slist, Deleter> headers_;
  CloudEvent encoded_;
  std::string line_;
  std::array<char, CURL_ERROR_SIZE> error_{};
  // Of the answer:
  std::string body_;  // its beginning
  std::size_t body_size_ = 0;
  std::string retry_after_;
  std::string barred_;  // an address that is not public
};

}  // namespace postrider
