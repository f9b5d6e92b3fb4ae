// SPDX-License-Identifier: Apache-2.0
#include "logger/http/answer.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <utility>
#include <vector>

#include "core/utf8.hpp"

namespace postrider::logger {
namespace {

namespace bj = boost::json;

std::optional<bj::object> object_in(std::string_view body) {
  bj::error_code error;
  bj::value value = bj::parse(bj::string_view(body.data(), body.size()), error);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

/// A wish for more is taken as one for this: none at all would be asked again at once.
constexpr Duration longest_pause = std::chrono::hours{24};

std::optional<Duration> pause_in(std::string_view text, TimePoint now) {
  if (text.empty()) return std::nullopt;
  if (std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    constexpr auto most = std::chrono::duration_cast<std::chrono::seconds>(longest_pause).count();
    std::int64_t seconds = 0;
    const bool countless = std::from_chars(text.data(), text.data() + text.size(), seconds).ec != std::errc{};
    return std::chrono::seconds{countless ? most : std::min<std::int64_t>(seconds, most)};
  }
  const time_t date = ::curl_getdate(std::string(text).c_str(), nullptr);
  const TimePoint until{std::chrono::seconds{date}};
  if (date == -1 || until <= now) return std::nullopt;
  return std::min<Duration>(until - now, longest_pause);
}

SendVerdict verdict_of(int status) {
  if (status >= 200 && status < 300) return SendVerdict::delivered;
  if (status == 400 || status == 409 || status == 422) return SendVerdict::rejected;
  if (status == 413) return SendVerdict::too_large;
  if (status == 429) return SendVerdict::throttled;
  return SendVerdict::transient;
}

SendItem item_of(const bj::object* object) {
  const bj::value* const status = object == nullptr ? nullptr : object->if_contains("status");
  if (status == nullptr || !status->is_string())
    return {SendVerdict::transient, 200, "an answer without a status"};
  const std::string_view word(status->get_string().data(), status->get_string().size());
  if (word == "created" || word == "duplicate") return {SendVerdict::delivered, 200, {}};
  if (word != "rejected") return {SendVerdict::transient, 200, "status " + utf8_repaired(word)};
  const bj::value* const errors = object->if_contains("errors");
  return {SendVerdict::rejected, 422, errors == nullptr ? std::string("rejected") : bj::serialize(*errors)};
}

/// Of the answer to one event alone. One that says what it is called now has been stored, too: a receiver
/// that returns the event as it has it says so by its id.
SendItem only_item(const bj::object& answer) {
  if (answer.contains("status")) return item_of(&answer);
  const bj::value* const id = answer.if_contains("id");
  const bool named = id != nullptr && (id->is_string() ? !id->get_string().empty() : id->is_number());
  if (named) return {SendVerdict::delivered, 200, {}};
  return {SendVerdict::transient, 200, "an answer with neither a status nor an id"};
}

const bj::value* index_of(const bj::value& result) {
  const bj::object* const object = result.if_object();
  return object == nullptr ? nullptr : object->if_contains("index");
}

/// The results of a batch, in the order of its events. Nothing when nobody knows whose they are.
std::optional<std::vector<SendItem>> items_of(const bj::array& results, std::size_t events) {
  std::vector<SendItem> items;
  const bool indexed = std::any_of(results.begin(), results.end(),
                                   [](const bj::value& result) { return index_of(result) != nullptr; });
  if (!indexed) {
    if (results.size() != events) return std::nullopt;
    for (const bj::value& result : results) items.push_back(item_of(result.if_object()));
    return items;
  }
  // An event without a result, or with two, is sent again, with its key.
  items.assign(events, {SendVerdict::transient, 200, "an answer without a result for the event"});
  std::vector<bool> told(events, false);
  for (const bj::value& result : results) {
    const bj::value* const index = index_of(result);
    if (index == nullptr || !(index->is_int64() || index->is_uint64())) continue;
    bj::error_code error;
    const auto at = index->to_number<std::uint64_t>(error);
    if (error || at >= events) continue;
    items[at] = told[at] ? SendItem{SendVerdict::transient, 200, "an answer with two results for the event"}
                         : item_of(result.if_object());
    told[at] = true;
  }
  return items;
}

}  // namespace

SendResult judge_answer(int status, std::string_view body, std::string_view retry_after, std::size_t events,
                        TimePoint now) {
  constexpr std::size_t longest_reason = 500;
  constexpr std::size_t page_beginning = 100;  // enough to know a page by
  SendResult result;
  result.verdict = verdict_of(status);
  result.status = status;
  if (result.verdict != SendVerdict::delivered) {
    result.retry_after = pause_in(retry_after, now);
    result.reason =
        "HTTP " + std::to_string(status) + ": " + utf8_repaired(utf8_prefix(body, longest_reason));
    return result;
  }
  const auto object = object_in(body);
  if (!object) {
    // A login page, a proxy's greeting: whoever says so has stored nothing.
    return {.verdict = SendVerdict::transient,
            .status = status,
            .reason = "HTTP " + std::to_string(status) + ", but the answer is no JSON object: '" +
                      utf8_repaired(utf8_prefix(body, page_beginning)) + "'"};
  }
  if (events < 2) {
    SendItem only = only_item(*object);
    if (only.verdict == SendVerdict::delivered) return result;
    const bool refused = only.verdict == SendVerdict::rejected;
    return {.verdict = only.verdict,
            .status = refused ? only.status : status,
            .reason = refused ? std::move(only.reason)
                              : "HTTP " + std::to_string(status) + ", but " + only.reason + ": '" +
                                    utf8_repaired(utf8_prefix(body, page_beginning)) + "'"};
  }
  // Without an account of each event nobody knows what was stored. They are sent again, with their keys.
  const bj::value* const results = object->if_contains("results");
  auto items =
      results == nullptr || !results->is_array() ? std::nullopt : items_of(results->get_array(), events);
  if (!items) {
    return {.verdict = SendVerdict::transient,
            .status = status,
            .reason = "an answer without a result for each event"};
  }
  const bool all = std::all_of(items->begin(), items->end(),
                               [](const SendItem& item) { return item.verdict == SendVerdict::delivered; });
  if (!all) result.items = std::move(*items);
  return result;
}

std::optional<Token> parse_token(std::string_view body) {
  const auto object = object_in(body);
  const bj::value* const token = object ? object->if_contains("access_token") : nullptr;
  if (token == nullptr || !token->is_string()) return std::nullopt;
  const bj::value* const lifetime = object->if_contains("expires_in");
  constexpr std::int64_t otherwise = 300;
  bj::error_code error;
  const auto seconds = lifetime == nullptr ? otherwise : lifetime->to_number<std::int64_t>(error);
  return Token{std::string(token->get_string()),
               std::chrono::seconds{error || seconds < 0 ? otherwise : seconds}};
}

}  // namespace postrider::logger
