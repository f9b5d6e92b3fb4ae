// SPDX-License-Identifier: Apache-2.0
#include <curl/curl.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <cctype>
#include <memory>
#include <mutex>
#include <vector>

#include "logger/http/answer.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/error.hpp"
#include "postrider/http_event_log_client.hpp"

namespace postrider {

using logger::judge_answer;
using logger::parse_token;

namespace {

constexpr std::size_t largest_answer = 4 * 1024 * 1024;

struct EasyDeleter {
  void operator()(CURL* handle) const noexcept { ::curl_easy_cleanup(handle); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const noexcept { ::curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;

/// What a request has brought.
struct Answer {
  CURLcode code = CURLE_OK;
  int status = 0;
  std::string body;
  std::string retry_after;
  std::string error;
};

std::size_t take_body(char* bytes, std::size_t, std::size_t count, void* user) {
  auto& answer = *static_cast<Answer*>(user);
  if (answer.body.size() + count > largest_answer) return 0;
  answer.body.append(bytes, count);
  return count;
}

std::size_t take_header(char* bytes, std::size_t, std::size_t count, void* user) {
  constexpr std::string_view name = "retry-after:";
  std::string_view line(bytes, count);
  if (line.size() > name.size() && ::curl_strnequal(line.data(), name.data(), name.size()) != 0) {
    line.remove_prefix(name.size());
    const std::size_t begin = line.find_first_not_of(" \t");
    const std::size_t end = line.find_last_not_of(" \t\r\n");
    if (begin != std::string_view::npos)
      static_cast<Answer*>(user)->retry_after = line.substr(begin, end - begin + 1);
  }
  return count;
}

/// Of one request: it began after so many cancellations.
struct UnderWay {
  const std::atomic<std::uint64_t>& cancellations;
  const std::uint64_t before = cancellations.load();
};

int stop_when_cancelled(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& request = *static_cast<const UnderWay*>(user);
  return request.cancellations.load(std::memory_order_relaxed) != request.before ? 1 : 0;
}

std::string gzipped(std::string_view text) {
  z_stream stream{};
  constexpr int gzip_format = 15 + 16;
  constexpr int memory = 8;
  if (::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, gzip_format, memory, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string out(::deflateBound(&stream, text.size()), '\0');
  std::string copy(text);
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::bad_alloc();
  return out;
}

void check(const HttpClientOptions& options) {
  const auto refuse = [](const std::string& what, const std::string& why) {
    // Whoever has written it elsewhere knows it by another name.
    std::string in_file = what;
    std::string variable = "EVENTLOG_";
    for (char& c : in_file) {
      if (c == '_' || c == '.') c = '-';
      variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    throw Error(ErrorCode::invalid_argument, "HttpClientOptions::" + what + " is refused", why,
                what == "headers" ? std::string()
                                  : "it is " + in_file + " below [eventlog] of a file, " + variable +
                                        " in the environment");
  };
  const auto is_http = [](const std::string& url) {
    return url.starts_with("http://") || url.starts_with("https://");
  };
  const auto one_line = [](const std::string& text) {
    return text.find_first_of("\r\n") == std::string::npos;
  };
  if (!options.enabled) return;
  if (options.base_url.empty()) refuse("base_url", "it is missing");
  if (!is_http(options.base_url)) refuse("base_url", "it must begin with http:// or https://");
  if (!options.oauth.token_url.empty() && !is_http(options.oauth.token_url)) {
    refuse("oauth.token_url", "it must begin with http:// or https://");
  }
  const OAuthOptions& oauth = options.oauth;
  if (oauth.token_url.empty() &&
      !(oauth.client_id.empty() && oauth.client_secret.empty() && oauth.scope.empty())) {
    refuse("oauth.token_url", "there are a client_id, a client_secret or a scope, and nowhere to use them");
  }
  if (!options.oauth.token_url.empty() && !options.bearer_token.empty()) {
    refuse("bearer_token", "there is oauth as well; give one of them");
  }
  if (!one_line(options.bearer_token)) refuse("bearer_token", "it has a line break");
  for (const auto& [name, value] : options.headers) {
    if (name.empty() || !one_line(name) || !one_line(value))
      refuse("headers", "'" + name + "' has a line break");
  }
  if (!options.ca_file.empty() && ::access(options.ca_file.c_str(), R_OK) != 0) {
    refuse("ca_file", options.ca_file + " cannot be read");
  }
  if (options.connect_timeout < std::chrono::milliseconds{1}) refuse("connect_timeout", "at least 1 ms");
  if (options.request_timeout < std::chrono::milliseconds{1}) refuse("request_timeout", "at least 1 ms");
}

}  // namespace

struct HttpEventLogClient::Parts {
  explicit Parts(HttpClientOptions the_options) : options(std::move(the_options)) {
    check(options);
    static std::once_flag once;
    std::call_once(once, [] { ::curl_global_init(CURL_GLOBAL_DEFAULT); });
    while (options.base_url.ends_with('/')) options.base_url.pop_back();
  }

  [[nodiscard]] Easy take_handle() POSTRIDER_EXCLUDES(mutex) {
    {
      const MutexLock lock(mutex);
      if (!idle.empty()) {
        Easy handle = std::move(idle.back());
        idle.pop_back();
        return handle;
      }
    }
    Easy handle(::curl_easy_init());
    if (!handle) throw std::bad_alloc();
    return handle;
  }
  void give_back(Easy handle) POSTRIDER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    idle.push_back(std::move(handle));
  }

  [[nodiscard]] Answer post(const std::string& url, const std::string& body, const char* type,
                            bool compressed, const std::string& authorization,
                            const std::string& user_password = {});
  /// Empty when none is needed. Throws Error when none can be had.
  [[nodiscard]] std::string authorization(bool fresh) POSTRIDER_EXCLUDES(token_mutex);

  HttpClientOptions options;
  std::atomic<std::uint64_t> cancellations{0};
  Mutex mutex;
  std::vector<Easy> idle POSTRIDER_GUARDED_BY(mutex);  // each keeps its connection
  Mutex token_mutex;  // held while a token is fetched: one request is enough for all
  std::string token POSTRIDER_GUARDED_BY(token_mutex);
  SteadyPoint token_until POSTRIDER_GUARDED_BY(token_mutex){};
};

Answer HttpEventLogClient::Parts::post(const std::string& url, const std::string& body, const char* type,
                                       bool compressed, const std::string& authorization,
                                       const std::string& user_password) {
  UnderWay request{cancellations};
  Easy handle = take_handle();
  CURL* const curl = handle.get();
  Answer answer;
  std::unique_ptr<curl_slist, ListDeleter> headers;
  const auto header = [&](const std::string& line) {
    curl_slist* const longer = ::curl_slist_append(headers.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    (void)headers.release();
    headers.reset(longer);
  };
  header(std::string("Content-Type: ") + type);
  header("Accept: application/json");
  header("Expect:");
  if (compressed) header("Content-Encoding: gzip");
  if (!authorization.empty()) header("Authorization: " + authorization);
  for (const auto& [name, value] : options.headers) header(std::string(name).append(": ").append(value));
  const auto milliseconds = [](Duration time) {
    return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
  };
  char error[CURL_ERROR_SIZE] = "";
  ::curl_easy_reset(curl);  // connections stay
  ::curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  ::curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  ::curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  ::curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  ::curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
  ::curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  ::curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(options.connect_timeout));
  ::curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, milliseconds(options.request_timeout));
  ::curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  ::curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
  ::curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  ::curl_easy_setopt(curl, CURLOPT_HEADERDATA, &answer);
  ::curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  ::curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, stop_when_cancelled);
  ::curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &request);
  ::curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
  if (!options.ca_file.empty()) ::curl_easy_setopt(curl, CURLOPT_CAINFO, options.ca_file.c_str());
  if (!user_password.empty()) ::curl_easy_setopt(curl, CURLOPT_USERPWD, user_password.c_str());
  answer.code = ::curl_easy_perform(curl);
  long status = 0;
  ::curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  if (answer.code != CURLE_OK) answer.error = *error != '\0' ? error : ::curl_easy_strerror(answer.code);
  ::curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  give_back(std::move(handle));
  return answer;
}

std::string HttpEventLogClient::Parts::authorization(bool fresh) {
  if (!options.bearer_token.empty()) return "Bearer " + options.bearer_token;
  const OAuthOptions& oauth = options.oauth;
  if (oauth.token_url.empty()) return {};
  const MutexLock lock(token_mutex);
  const SteadyPoint now = Clock::system().steady_now();
  if (!token.empty() && !fresh && now + oauth.refresh_before < token_until) return "Bearer " + token;
  std::string body = "grant_type=client_credentials";
  if (!oauth.scope.empty()) {
    char* const escaped =
        ::curl_easy_escape(nullptr, oauth.scope.data(), static_cast<int>(oauth.scope.size()));
    if (escaped == nullptr) throw std::bad_alloc();
    body.append("&scope=").append(escaped);
    ::curl_free(escaped);
  }
  const Answer answer = post(oauth.token_url, body, "application/x-www-form-urlencoded", false, {},
                             oauth.client_id + ":" + oauth.client_secret);
  const auto made = answer.code == CURLE_OK && answer.status == 200 ? parse_token(answer.body) : std::nullopt;
  if (!made) {
    // One that is still good is better than none.
    if (!token.empty() && !fresh && now < token_until) return "Bearer " + token;
    throw Error(ErrorCode::unavailable, {.retryable = true}, "cannot get an OAuth token",
                answer.code == CURLE_OK ? "HTTP " + std::to_string(answer.status) : answer.error,
                "are token_url, client_id and client_secret right?");
  }
  token = made->text;
  token_until = now + made->lifetime;
  return "Bearer " + token;
}

HttpEventLogClient::HttpEventLogClient(HttpClientOptions options)
    : parts_(std::make_unique<Parts>(std::move(options))) {}
HttpEventLogClient::~HttpEventLogClient() = default;

void HttpEventLogClient::cancel() noexcept {
  ++parts_->cancellations;
}

SendResult HttpEventLogClient::send(std::span<const OutgoingEvent> events) {
  if (events.empty()) return {};
  if (!parts_->options.enabled)
    return {.verdict = SendVerdict::transient, .reason = "the client is switched off"};
  const bool many = events.size() > 1;
  std::size_t size = 2;
  for (const OutgoingEvent& event : events) size += event.members.size() + 3;
  std::string body;
  body.reserve(size);
  if (many) body += '[';
  for (const OutgoingEvent& event : events) {
    if (body.size() > 1) body += ',';
    ((body += '{') += event.members) += '}';
  }
  if (many) body += ']';
  const bool gzip = parts_->options.gzip;
  if (gzip) body = gzipped(body);
  const std::string url = parts_->options.base_url + (many ? "/v1/events/batch" : "/v1/events");
  for (bool fresh = false;; fresh = true) {
    const Answer answer = parts_->post(url, body, "application/json", gzip, parts_->authorization(fresh));
    if (answer.code != CURLE_OK) {
      return {.verdict = SendVerdict::transient, .status = 0, .reason = url + ": " + answer.error};
    }
    // A token that was called back early: once more with a new one.
    if (answer.status == 401 && !fresh && !parts_->options.oauth.token_url.empty()) continue;
    return judge_answer(answer.status, answer.body, answer.retry_after, events.size(), Clock::system().now());
  }
}

}  // namespace postrider
