// SPDX-License-Identifier: Apache-2.0
#include "publishers/webhook/verdict.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <ctime>

#include "core/utf8.hpp"
#include "publishers/guarded_sink.hpp"

namespace postrider {
namespace {

Duration pause_in(std::string_view text, TimePoint now) {
  // The guard bounds it for all sinks; here, so that no number is too large to be counted with.
  constexpr auto longest = std::chrono::floor<std::chrono::seconds>(longest_asked_pause);
  if (text.empty()) return {};
  if (text.find_first_not_of("0123456789") == std::string_view::npos) {
    std::int64_t seconds = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), seconds);
    // More digits than fit are more than that as well.
    return parsed.ec == std::errc{} ? std::min(std::chrono::seconds{seconds}, longest) : longest;
  }
  const std::time_t date = ::curl_getdate(std::string(text).c_str(), nullptr);
  if (date == -1) return {};
  const TimePoint until{std::chrono::seconds{date}};
  return std::clamp<Duration>(until - now, Duration{0}, longest);
}

}  // namespace

WebhookVerdict judge_webhook(int status, std::string_view retry_after, std::string_view body, TimePoint now) {
  using Kind = WebhookVerdict::Kind;
  if (status >= 200 && status < 300) return {};
  std::string why = "HTTP " + std::to_string(status);
  if (status >= 300 && status < 400) {
    why += ", a redirect, which is not followed. Hint: give its final address as the url";
    return {Kind::unavailable, std::move(why)};
  }
  if (status == 410) return {Kind::gone, std::move(why)};
  constexpr std::size_t longest_quote = 300;
  std::string quote = utf8_repaired(utf8_prefix(body, longest_quote));
  std::replace_if(
      quote.begin(), quote.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  if (!quote.empty()) why += ": " + quote;
  // They speak of the set-up: the address, or who we are. No event shall die of it.
  if (status == 401 || status == 403 || status == 404) {
    return {Kind::unavailable, why + ". Hint: look at the url and the headers"};
  }
  const bool later = status == 408 || status == 425 || status == 429 || status >= 500 || status < 200;
  if (!later) return {Kind::refused, std::move(why)};
  const Duration pause = pause_in(retry_after, now);
  // What a handler answers that stumbles, or a gateway before one that has crashed: over this event or over
  // everything. Who asks for a pause knows that it has no time, for whatever event.
  const bool stumbled = status >= 500 && pause == Duration{0};
  return {stumbled ? Kind::unclear : Kind::unavailable, std::move(why), pause};
}

}  // namespace postrider
