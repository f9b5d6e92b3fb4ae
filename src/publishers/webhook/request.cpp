// SPDX-License-Identifier: Apache-2.0
#include "publishers/webhook/request.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <new>

#include "publishers/header_text.hpp"
#include "publishers/webhook/address.hpp"
#include "publishers/webhook/secrets.hpp"

namespace postrider {
namespace {

constexpr std::size_t kept_body = 2048;          // for the reason of a refusal
constexpr std::size_t largest_body = 64 * 1024;  // read to the end, so that the connection can be kept
constexpr std::size_t longest_retry_after = 64;

long milliseconds(Duration time) {  // NOLINT(google-runtime-int)
  return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
}

}  // namespace

WebhookRequest::WebhookRequest(const WebhookSinkOptions& options, const WebhookSigner& signer)
    : options_(options), signer_(signer), handle_(::curl_easy_init()) {
  if (!handle_) throw std::bad_alloc();
  set_options_that_stay();
}

void WebhookRequest::set_options_that_stay() {
  CURL* const curl = handle_.get();
  ::curl_easy_setopt(curl, CURLOPT_URL, options_.url.c_str());
  ::curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  ::curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  // A proxy would connect to where we may not, and the environment must not say where events go.
  ::curl_easy_setopt(curl, CURLOPT_PROXY, "");
  ::curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  ::curl_easy_setopt(curl, CURLOPT_USERAGENT, "postrider/" POSTRIDER_VERSION);
  ::curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
  // A name that is being looked up does not hold up the end of a request.
  ::curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
#endif
  ::curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(options_.connect_timeout));
  ::curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, milliseconds(options_.timeout));
  ::curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  ::curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
  ::curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  ::curl_easy_setopt(curl, CURLOPT_HEADERDATA, this);
  ::curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  ::curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, this);
  ::curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error_.data());
  ::curl_easy_setopt(curl, CURLOPT_PRIVATE, this);
  if (!options_.verify_tls) {
    ::curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    ::curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!options_.ca_file.empty()) ::curl_easy_setopt(curl, CURLOPT_CAINFO, options_.ca_file.c_str());
}

void WebhookRequest::prepare(const SinkMessage& message, TimePoint now) {
  encoded_.fill(message, options_.cloud_events);
  body_.clear();
  body_size_ = 0;
  retry_after_.clear();
  barred_.clear();
  error_.front() = '\0';
  write_headers(now);
  CURL* const curl = handle_.get();
  ::curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_.get());
  ::curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(encoded_.body().size()));
  // Null would mean that the body is read from a callback.
  ::curl_easy_setopt(curl, CURLOPT_POSTFIELDS, encoded_.body().empty() ? "" : encoded_.body().data());
}

void WebhookRequest::write_headers(TimePoint now) {
  headers_.reset();
  header("Content-Type", encoded_.content_type());
  for (const CloudEvent::Attribute& attribute : encoded_.attributes()) {
    header(std::string("ce-").append(attribute.name), cloud_events_header_value(attribute.value));
  }
  for (const CloudEvent::Header& one : encoded_.headers()) {
    if (!ours(one.name)) header(one.name, one.value);
  }
  for (const auto& [name, value] : options_.headers) header(name, value);
  const std::string timestamp =
      std::to_string(std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count());
  header("webhook-id", encoded_.id());
  header("webhook-timestamp", timestamp);
  if (signer_.signs()) {
    header("webhook-signature", signer_.sign(encoded_.id(), timestamp, encoded_.body()));
  }
  line_ = "Expect:";  // curl would ask before a large body, and wait
  curl_slist* const last = ::curl_slist_append(headers_.get(), line_.c_str());
  if (last == nullptr) throw std::bad_alloc();
}

void WebhookRequest::header(std::string_view name, std::string_view value) {
  line_.assign(name);
  if (value.empty()) {
    line_ += ';';  // how curl is told of an empty one
  } else {
    line_.append(": ").append(value);
  }
  curl_slist* const longer = ::curl_slist_append(headers_.get(), line_.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  if (!headers_) headers_.reset(longer);  // else it has the same first line
}

/// What the operator has set, no event sets.
bool WebhookRequest::ours(std::string_view name) const {
  return std::any_of(options_.headers.begin(), options_.headers.end(),
                     [&](const auto& one) { return same_ignoring_case(one.first, name); });
}

std::size_t WebhookRequest::take_body(char* bytes, std::size_t, std::size_t count, void* self) {
  auto& request = *static_cast<WebhookRequest*>(self);
  request.body_size_ += count;
  if (request.body_size_ > largest_body) return 0;  // ends the request; its status is known
  if (request.body_.size() < kept_body) {
    request.body_.append(bytes, std::min(count, kept_body - request.body_.size()));
  }
  return count;
}

std::size_t WebhookRequest::take_header(char* bytes, std::size_t, std::size_t count, void* self) {
  constexpr std::string_view name = "retry-after:";
  std::string_view line(bytes, count);
  if (line.size() <= name.size() || !same_ignoring_case(line.substr(0, name.size()), name)) return count;
  line.remove_prefix(name.size());
  const std::size_t begin = line.find_first_not_of(" \t");
  const std::size_t end = line.find_last_not_of(" \t\r\n");
  if (begin != std::string_view::npos && end >= begin && end - begin < longest_retry_after) {
    static_cast<WebhookRequest*>(self)->retry_after_ = line.substr(begin, end - begin + 1);
  }
  return count;
}

/// Here the address is known that is really connected to, however it came from the name.
curl_socket_t WebhookRequest::open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  auto& request = *static_cast<WebhookRequest*>(self);
  if (!request.options_.allow_private && !public_address(address->addr)) {
    request.barred_ = address_text(address->addr);
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

WebhookVerdict WebhookRequest::judge(CURLcode code, TimePoint now) const {
  long status = 0;  // NOLINT(google-runtime-int)
  ::curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
  // With a status the receiver has decided, whatever became of the rest of its answer.
  const bool answered = status >= 200;
  if (code != CURLE_OK && !answered) return trouble(code);
  return judge_webhook(static_cast<int>(status), retry_after_, without_secrets(body_), now);
}

WebhookVerdict WebhookRequest::trouble(CURLcode code) const {
  std::string why;
  if (!barred_.empty()) {
    why = barred_ +
          " is not an address of the public internet. Hint: allow private addresses (allow-private of the "
          "sink, "
          "WebhookSinkOptions::allow_private) if it is meant to be reached";
  } else {
    why = error_.front() != '\0' ? error_.data() : ::curl_easy_strerror(code);
    if (code == CURLE_PEER_FAILED_VERIFICATION) why += ". Hint: is ca_file the authority of its certificate?";
  }
  return {.kind = WebhookVerdict::Kind::unavailable, .why = std::move(why)};
}

/// A receiver may repeat in its answer what it has got.
std::string WebhookRequest::without_secrets(std::string text) const {
  for (const std::string& secret : webhook_secrets(options_)) {
    for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += 3) {
      text.replace(at, secret.size(), "***");
    }
  }
  return text;
}

}  // namespace postrider
