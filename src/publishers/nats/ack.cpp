// SPDX-License-Identifier: Apache-2.0
#include "publishers/nats/ack.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "core/utf8.hpp"

namespace postrider::nats {
namespace {

namespace bj = boost::json;

// Of the server's errors.json.
constexpr int account_full = 10'002;
constexpr int no_resources = 10'023;
constexpr int no_memory = 10'028;
constexpr int no_storage = 10'047;
constexpr int no_jetstream_for_account = 10'039;
constexpr int message_too_large = 10'054;
constexpr int no_stream = 10'059;
constexpr int no_jetstream = 10'076;
constexpr int store_failed = 10'077;
constexpr int headers_too_large = 10'097;

std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 200;
  return "'" + utf8_repaired(utf8_prefix(text, longest)) + "'";
}

Ack not_understood(std::string_view json) {
  return {.reason = "the answer " + quoted(json) + " is not JetStream's"};
}

std::string_view text_in(const bj::object& object, std::string_view name) {
  const bj::value* found = object.if_contains({name.data(), name.size()});
  const bj::string* text = found != nullptr ? found->if_string() : nullptr;
  return text != nullptr ? std::string_view(text->data(), text->size()) : std::string_view();
}

}  // namespace

Ack refusal_of(int code, std::string_view description) {
  const std::string said = quoted(description) + " (" + std::to_string(code) + ")";
  switch (code) {
    case message_too_large:
      return {.of_the_event = true, .reason = "the event is larger than the stream takes: " + said};
    case headers_too_large:
      return {.of_the_event = true, .reason = "the event's headers and attributes are too large: " + said};
    case account_full:
    case no_resources:
    case no_memory:
    case no_storage:
      return {.reason =
                  "the server is full: " + said + ". Hint: give JetStream more room, or remove old messages"};
    case store_failed:
      if (description.starts_with("maximum ")) {
        return {.reason = "the stream is full: " + said + ". Hint: raise its bounds, or remove old messages"};
      }
      break;
    case no_stream:
      return {.reason =
                  "there is no such stream. Hint: make it, or let it be made: "
                  "create_stream, in a configuration create-stream = true"};
    case no_jetstream:
    case no_jetstream_for_account:
      return {
          .reason =
              "the server has no JetStream for us. Hint: start it with -js, and enable it for the account"};
    default:
      break;
  }
  return {.reason = "the stream answers " + said};
}

Ack parse_ack(std::string_view json, std::string_view stream) {
  bj::error_code failed;
  const bj::value answer = bj::parse({json.data(), json.size()}, failed);
  const bj::object* object = failed ? nullptr : answer.if_object();
  if (object == nullptr) return not_understood(json);
  if (const bj::value* found = object->if_contains("error"); found != nullptr) {
    const bj::object* error = found->if_object();
    if (error == nullptr) return not_understood(json);
    const bj::value* code = error->if_contains("err_code");
    const std::int64_t* number = code != nullptr ? code->if_int64() : nullptr;
    const bool sane = number != nullptr && *number >= 0 && *number <= 1'000'000;
    return refusal_of(sane ? static_cast<int>(*number) : 0, text_in(*error, "description"));
  }
  const std::string_view taken_by = text_in(*object, "stream");
  if (taken_by.empty() || !object->contains("seq")) return not_understood(json);
  if (taken_by != stream) {
    return {.reason = "the stream " + quoted(taken_by) + " has taken it instead of " + quoted(stream) +
                      ". Hint: set stream to the one that has the sink's subjects"};
  }
  return {.stored = true};
}

}  // namespace postrider::nats
