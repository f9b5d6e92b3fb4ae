// SPDX-License-Identifier: Apache-2.0
#include "postrider/webhook_sink.hpp"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <limits>
#include <mutex>
#include <new>
#include <optional>

#include "core/option_check.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/error.hpp"
#include "publishers/header_text.hpp"
#include "publishers/key_order.hpp"
#include "publishers/webhook/address.hpp"
#include "publishers/webhook/request.hpp"

namespace postrider {
namespace {

struct MultiDeleter {
  void operator()(CURLM* multi) const noexcept { ::curl_multi_cleanup(multi); }
};

std::unique_ptr<CURLM, MultiDeleter> new_multi(std::size_t connections) {
  static std::once_flag once;
  std::call_once(once, [] { ::curl_global_init(CURL_GLOBAL_DEFAULT); });
  std::unique_ptr<CURLM, MultiDeleter> multi(::curl_multi_init());
  if (!multi) throw std::bad_alloc();
  ::curl_multi_setopt(multi.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(connections));
  return multi;
}

/// Of the url what may be seen: its path and query may be the secret.
std::string origin_of(const std::string& url) {
  const boost::urls::url_view parsed = boost::urls::parse_uri(url).value();
  return std::string(parsed.scheme()) + "://" + std::string(parsed.encoded_host_and_port());
}

class WebhookSink final : public Sink {
 public:
  WebhookSink(WebhookSinkOptions options, std::vector<std::string> keys, Clock& clock, LogCallback log)
      : options_(std::move(options)),
        origin_(origin_of(options_.url)),
        signer_(std::move(keys)),
        clock_(clock),
        log_(std::move(log)),
        multi_(new_multi(options_.parallel)) {}
  ~WebhookSink() override { cancel_from(0); }

  /// The guard before it lets one caller in at a time.
  PublishResult send(std::span<const SinkMessage> messages) override {
    if (gone_) return PublishResult::unavailable(0, gone_text());
    Batch batch{.messages = messages,
                .order = KeyOrder(
                    messages, options_.parallel == 1 ? KeyOrder::Rule::as_one_key : KeyOrder::Rule::by_key),
                .done = std::vector<bool>(messages.size(), false),
                .limit = messages.size()};
    try {
      while (!closed_ && (start_some(batch), !running_.empty())) turn(batch);
    } catch (...) {
      cancel_from(0);
      throw;
    }
    cancel_from(0);
    return result_of(batch);
  }
  const std::string& name() const noexcept override { return options_.name; }
  bool healthy() const override { return !gone_; }
  void revive() override {
    if (!gone_.exchange(false)) return;
    log_(LogLevel::info, "postrider: sink '" + name() + "' is switched on again, after " + origin_ +
                             " had answered 410 Gone");
  }
  void close() noexcept override {
    closed_ = true;
    ::curl_multi_wakeup(multi_.get());
  }

 private:
  struct Batch {
    std::span<const SinkMessage> messages;
    KeyOrder order;
    std::vector<bool> done;
    /// Nothing from here on is started: the first refused one, or 0 when the receiver is away.
    std::size_t limit;
    /// By itself, without a word about the others.
    std::optional<std::size_t> failed{};
    WebhookVerdict verdict{};  ///< of it
    std::string away_why{};
    Duration retry_after{};
  };
  struct Running {
    std::size_t at;
    std::unique_ptr<WebhookRequest> request;
  };

  void start_some(Batch& batch) {
    while (running_.size() < options_.parallel) {
      const std::optional<std::size_t> next = batch.order.peek();
      if (!next || *next >= batch.limit) return;
      batch.order.take();
      std::unique_ptr<WebhookRequest> request = take_idle();
      request->prepare(batch.messages[*next], clock_.now());
      check(::curl_multi_add_handle(multi_.get(), request->handle()));
      running_.push_back({*next, std::move(request)});
    }
  }
  /// Lets curl work, and waits for the network when nothing has come of it.
  void turn(Batch& batch) {
    constexpr int at_most_ms = 1000;
    int still_running = 0;
    check(::curl_multi_perform(multi_.get(), &still_running));
    if (!settle_ended(batch)) check(::curl_multi_poll(multi_.get(), nullptr, 0, at_most_ms, nullptr));
  }
  bool settle_ended(Batch& batch) {
    bool any = false;
    int left = 0;
    while (const CURLMsg* news = ::curl_multi_info_read(multi_.get(), &left)) {
      if (news->msg != CURLMSG_DONE) continue;
      const CURLcode code = news->data.result;
      const auto found = std::find_if(running_.begin(), running_.end(), [&](const Running& one) {
        return one.request->handle() == news->easy_handle;
      });
      if (found == running_.end()) continue;
      any = true;
      const std::size_t at = found->at;
      const WebhookVerdict verdict = found->request->judge(code, clock_.now());
      put_back(found);
      settle(batch, at, verdict);
    }
    return any;
  }
  void settle(Batch& batch, std::size_t at, const WebhookVerdict& verdict) {
    switch (verdict.kind) {
      case WebhookVerdict::Kind::taken:
        batch.done[at] = true;
        batch.order.done(at);
        return;
      case WebhookVerdict::Kind::refused:
      case WebhookVerdict::Kind::unclear:
        // What comes before it is still sent, so that the refusal is told of the right one.
        if (at < batch.failed.value_or(std::numeric_limits<std::size_t>::max())) {
          batch.failed = at;
          batch.verdict = verdict;
        }
        // Of others that are on their way each is of another key: they may end.
        batch.limit = std::min(batch.limit, at);
        return;
      case WebhookVerdict::Kind::gone:
        give_up();
        [[fallthrough]];
      case WebhookVerdict::Kind::unavailable:
        batch.limit = 0;
        batch.away_why = gone_ ? gone_text() : origin_ + " is not available: " + verdict.why;
        batch.retry_after = std::max(batch.retry_after, verdict.retry_after);
        break;
    }
    cancel_from(at);  // they come again in any case
  }
  PublishResult result_of(const Batch& batch) const {
    const auto missing = std::find(batch.done.begin(), batch.done.end(), false);
    if (missing == batch.done.end()) return PublishResult::all();
    const auto count = static_cast<std::size_t>(missing - batch.done.begin());
    std::vector<std::size_t> behind;
    for (std::size_t at = count + 1; at < batch.done.size(); ++at) {
      if (batch.done[at]) behind.push_back(at);
    }
    return what_stopped(batch, count).with_behind(std::move(behind));
  }
  PublishResult what_stopped(const Batch& batch, std::size_t count) const {
    if (batch.failed == count) {
      return batch.verdict.kind == WebhookVerdict::Kind::refused
                 ? PublishResult::refused(count, origin_ + ": " + batch.verdict.why)
                 : PublishResult::unclear(count, origin_ + " fails with it: " + batch.verdict.why);
    }
    if (closed_) return PublishResult::unavailable(count, "'" + name() + "' is closed");
    return PublishResult::unavailable(count, batch.away_why, batch.retry_after);
  }

  std::unique_ptr<WebhookRequest> take_idle() {
    if (idle_.empty()) return std::make_unique<WebhookRequest>(options_, signer_);
    std::unique_ptr<WebhookRequest> request = std::move(idle_.back());
    idle_.pop_back();
    return request;
  }
  void put_back(std::vector<Running>::iterator one) {
    ::curl_multi_remove_handle(multi_.get(), one->request->handle());
    idle_.push_back(std::move(one->request));
    running_.erase(one);
  }
  /// Ends the requests of this and of later messages; their connections are closed.
  void cancel_from(std::size_t first) {
    for (std::size_t i = running_.size(); i-- > 0;) {
      if (running_[i].at >= first) put_back(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  static void check(CURLMcode code) {
    if (code == CURLM_OK) return;
    throw Error(ErrorCode::unavailable, {.retryable = true}, "cannot send a webhook",
                ::curl_multi_strerror(code));
  }
  void give_up() {
    if (gone_.exchange(true)) return;
    log_(LogLevel::error, "postrider: sink '" + name() + "' is switched off: " + gone_text());
  }
  std::string gone_text() const {
    return origin_ +
           " has answered 410 Gone: it wants no events any more. Hint: if it does, revive the sink "
           "(postrider serve: kill -HUP, or systemctl reload postrider)";
  }

  const WebhookSinkOptions options_;
  const std::string origin_;
  const WebhookSigner signer_;
  Clock& clock_;
  const LogCallback log_;
  std::unique_ptr<CURLM, MultiDeleter> multi_;
  std::vector<std::unique_ptr<WebhookRequest>> idle_;
  std::vector<Running> running_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> gone_{false};
};

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

void check_url(const OptionCheck& check, const std::string& url) {
  constexpr std::size_t longest = 2048;
  const std::string bounds = "an address http://… or https://… of at most 2048 characters";
  const auto parsed = boost::urls::parse_uri(url);
  // Not shown: it may have a password in it, or be a secret as a whole.
  if (!parsed || url.size() > longest || parsed->encoded_host().empty() ||
      (parsed->scheme() != "http" && parsed->scheme() != "https")) {
    check.refuse("url", url.empty() ? "''" : "'…'", bounds);
  }
  if (parsed->has_userinfo()) {
    check.refuse("url", "'…@…'", "without a user and a password: give them as a header Authorization");
  }
  if (parsed->has_fragment()) check.refuse("url", "'…#…'", "without a fragment, which is never sent");
}

/// What would be refused at each request is refused before the first. A name is judged by where it leads when
/// it is connected to.
void check_host(const WebhookSinkOptions& options) {
  const std::string host = boost::urls::parse_uri(options.url).value().host_address();
  if (options.allow_private || !literal_but_not_public(host)) return;
  throw Error(ErrorCode::invalid_argument, "cannot send webhooks to " + host,
              "it is not an address of the public internet",
              "if it is meant to be reached, allow private addresses: allow-private = true of the sink "
              "(WebhookSinkOptions::allow_private)");
}

void check_headers(const OptionCheck& check, const WebhookSinkOptions& options) {
  constexpr std::size_t most = 32;
  constexpr std::size_t longest = 8192;
  constexpr std::array<std::string_view, 7> own{
      "content-type", "content-length", "transfer-encoding", "connection", "expect", "host", "user-agent"};
  check.count("headers.size()", options.headers.size(), 0, most);
  for (const auto& [name, value] : options.headers) {
    const bool fits =
        header_token(name) && name.size() <= longest && value.size() <= longest && printable(value);
    if (!fits) {
      check.refuse("headers", "'" + (header_token(name) ? name : "…") + "'",
                   "a name of HTTP and a value of printable ASCII, of at most 8192 characters each");
    }
    const std::string_view sent = name;
    const bool taken = same_ignoring_case(sent.substr(0, 3), "ce-") ||
                       same_ignoring_case(sent.substr(0, 8), "webhook-") ||
                       std::any_of(own.begin(), own.end(),
                                   [&](std::string_view one) { return same_ignoring_case(sent, one); });
    if (taken) check.refuse("headers", "'" + name + "'", "one that the sink does not set itself");
  }
}

std::vector<std::string> keys_of(const OptionCheck& check, const std::vector<std::string>& secrets) {
  constexpr std::size_t most = 8;
  check.count("secrets.size()", secrets.size(), 0, most);
  std::vector<std::string> keys;
  for (const std::string& secret : secrets) {
    std::optional<std::string> key = WebhookSigner::key_of(secret);
    if (!key) check.refuse("secrets", "'…'", "whsec_ and the base64 of 24 to 64 bytes");
    keys.push_back(*std::move(key));
  }
  return keys;
}

}  // namespace

std::shared_ptr<Sink> webhook_sink(WebhookSinkOptions options) {
  const OptionCheck check("WebhookSinkOptions");
  constexpr Duration shortest = std::chrono::milliseconds{1};
  constexpr Duration longest = std::chrono::minutes{10};
  check_url(check, options.url);
  check_host(options);
  check_headers(check, options);
  check.count("parallel", options.parallel, 1, 64);
  check.time("timeout", options.timeout, shortest, longest);
  check.time("connect_timeout", options.connect_timeout, shortest, longest);
  if (!options.ca_file.empty() && ::access(options.ca_file.c_str(), R_OK) != 0) {
    check.refuse("ca_file", "'" + options.ca_file + "'", "a file that can be read");
  }
  options.cloud_events.check();
  std::vector<std::string> keys = keys_of(check, options.secrets);
  options.secrets.clear();
  SinkLimits limits = std::exchange(options.limits, {});
  Clock& clock = limits.clock != nullptr ? *limits.clock : Clock::system();
  LogCallback log = guarded(limits.log);
  return guarded_sink(
      std::make_shared<WebhookSink>(std::move(options), std::move(keys), clock, std::move(log)),
      std::move(limits));
}

}  // namespace postrider
