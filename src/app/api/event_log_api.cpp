// SPDX-License-Identifier: Apache-2.0
#include "app/api/event_log_api.hpp"

#include <boost/json.hpp>
#include <utility>

#include "app/api/entry_json.hpp"
#include "app/api/event_query.hpp"
#include "app/api/routes.hpp"
#include "core/json_text.hpp"
#include "core/option_check.hpp"
#include "core/utf8.hpp"
#include "core/what_of.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;
using http::Problem;
using http::Reply;
using http::Request;
using http::Response;

constexpr std::size_t entry_depth = 32;  // of an event
/// A batch is read so deep that an event which is too deep can be told from its neighbours.
constexpr std::size_t max_batch_depth = 256;

EventLogApiOptions checked(EventLogApiOptions options) {
  const OptionCheck check("EventLogApiOptions");
  check.count("max_batch", options.max_batch, 1, 100'000);
  check.count("event_bytes", options.event_bytes, 1024, 64U << 20U);
  check.count("batch_bytes", options.batch_bytes, 1024, 1U << 30U);
  options.log = guarded(std::move(options.log));
  if (!options.writer.log) options.writer.log = options.log;
  if (options.writer.clock == nullptr) options.writer.clock = options.clock;
  return options;
}

/// What a client is told when the database failed: whether to send again. The reason is in our log.
Problem entry_problem(const Error& error) {
  if (!may_pass(error)) {
    return {.status = 500, .code = "internal", .detail = "the server failed", .hint = "its log says why"};
  }
  return {.status = 503,
          .code = "storage-unavailable",
          .detail = "the database cannot take or answer this now",
          .hint = "send it again, with the same idempotency keys: nothing is stored twice",
          .headers = {{"Retry-After", error.code() == ErrorCode::contention ? "1" : "5"}}};
}

/// The database has not answered within the request's time.
Problem late_write() {
  return {.status = 503,
          .code = "storage-timeout",
          .detail = "the database has not answered in time: what was sent may be stored, or not",
          .hint =
              "send it again with the same idempotency keys, then it is stored once; without keys it may be "
              "stored twice",
          .headers = {{"Retry-After", "5"}}};
}

Problem late_read() {
  return {.status = 503,
          .code = "storage-timeout",
          .detail = "the database has not answered in time",
          .hint = "ask again, or for less: a shorter span of time, a rarer word",
          .headers = {{"Retry-After", "5"}}};
}

Problem starting(const Storage& storage) {
  return not_ready("the server is starting: it waits for the database (" +
                   std::string(to_string(storage.kind())) + ")");
}

Problem overloaded() {
  return {.status = 503,
          .code = "busy",
          .detail = "too many events are waiting to be stored",
          .hint = "send them again after a moment",
          .headers = {{"Retry-After", "1"}}};
}

Problem invalid(const Errors& errors) {
  return {.status = 422,
          .code = "invalid-event",
          .detail = errors.front().detail,
          .hint = "see docs/eventlog-api.md for the fields",
          .errors = errors};
}

/// Nothing when the text is no JSON; then the client has been told where it ends to be.
std::optional<json::value> parse_body(const std::string& body, const json::storage_ptr& memory,
                                      const Reply& reply, std::size_t depth = entry_depth) {
  json::parse_options options;
  options.max_depth = depth;
  json::error_code error;
  const auto parse = [&](const std::string& text) {
    return json::parse(json::string_view(text.data(), text.size()), error, memory, options);
  };
  json::value value = parse(body);
  if (!error) return value;
  // One event with half a character in it does not refuse its neighbours.
  if (const std::optional<std::string> repaired = without_lone_surrogates(body)) {
    value = parse(*repaired);
    if (!error) return value;
  }
  const bool deep = error == json::error::too_deep;
  reply(to_response(Problem{
      .status = 400,
      .code = "invalid-json",
      .detail = "the body is not JSON: " + json_fault(body, depth).value_or(std::string(error.message())),
      .hint = deep ? "at most " + std::to_string(entry_depth) + " levels are taken"
                   : "see docs/eventlog-api.md for what an event looks like"}));
  return std::nullopt;
}

/// Whether it has more levels; the parser bounds how many there can be.
bool is_deeper(const json::value& value, std::size_t levels) {
  const auto any = [&](const auto& parts, const auto& value_of) {
    return levels == 0 || std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
             return is_deeper(value_of(part), levels - 1);
           });
  };
  if (const json::array* const list = value.if_array())
    return any(*list, [](const json::value& part) -> const json::value& { return part; });
  if (const json::object* const object = value.if_object())
    return any(*object, [](const json::key_value_pair& part) -> const json::value& { return part.value(); });
  return false;
}

std::string id_text(EntryId id) {
  return std::to_string(static_cast<std::int64_t>(id));
}

/// The key of a single event may come as a header. Nothing when they contradict each other.
std::optional<Errors> take_key_of_header(const Request& request, Entry& entry) {
  const std::string_view key = request.header("Idempotency-Key");
  if (key.empty()) return std::nullopt;
  const std::optional<std::size_t> length = utf8_length(key);
  if (!length.has_value() || *length > EntryLimits::name) {
    return Errors{{"Idempotency-Key", "too-long",
                   "the header has more than " + std::to_string(EntryLimits::name) + " characters"}};
  }
  if (!entry.idempotency_key.empty() && entry.idempotency_key != key) {
    return Errors{{"/idempotencyKey", "conflict", "the header Idempotency-Key says something else"}};
  }
  entry.idempotency_key = key;
  return std::nullopt;
}

/// What came of the entries of one batch, in their order.
struct Items {
  std::vector<Errors> errors;  ///< empty: it was handed to the writer
  std::size_t valid = 0;
};

void append_errors(std::string& out, const Errors& errors) {
  out += R"(,"errors":[)";
  for (std::size_t i = 0; i < errors.size(); ++i) {
    out += i == 0 ? R"({"field":)" : R"(,{"field":)";
    append_text(out, errors[i].field);
    out += R"(,"code":)";
    append_text(out, errors[i].code);
    out += R"(,"detail":)";
    append_text(out, errors[i].detail);
    out += '}';
  }
  out += ']';
}

Response batch_response(const Items& items, const EntryWriter::Outcomes& outcomes) {
  std::size_t created = 0;
  std::size_t duplicates = 0;
  std::size_t rejected = 0;
  std::string results;
  auto outcome = outcomes.begin();
  for (std::size_t index = 0; index < items.errors.size(); ++index) {
    results += index == 0 ? R"({"index":)" : R"(,{"index":)";
    results += std::to_string(index);
    Errors errors = items.errors[index];
    const InsertedEntry* inserted = nullptr;
    if (errors.empty()) {
      inserted = std::get_if<InsertedEntry>(&*outcome);
      if (inserted == nullptr) errors = {{"", "refused", std::get<EntryWriter::Refused>(*outcome).reason}};
      ++outcome;
    }
    if (inserted == nullptr) {
      ++rejected;
      results += R"(,"status":"rejected")";
      append_errors(results, errors);
    } else {
      ++(inserted->duplicate ? duplicates : created);
      results += inserted->duplicate ? R"(,"status":"duplicate","id":")" : R"(,"status":"created","id":")";
      results += id_text(inserted->id) + '"';
    }
    results += '}';
  }
  return {.body = R"({"created":)" + std::to_string(created) + R"(,"duplicates":)" +
                  std::to_string(duplicates) + R"(,"rejected":)" + std::to_string(rejected) +
                  R"(,"results":[)" + results + "]}"};
}

Response single_response(const EntryWriter::Outcome& outcome) {
  const auto* inserted = std::get_if<InsertedEntry>(&outcome);
  if (inserted == nullptr) {
    return to_response(invalid({{"", "refused", std::get<EntryWriter::Refused>(outcome).reason}}));
  }
  const std::string id = id_text(inserted->id);
  return {.status = inserted->duplicate ? 200 : 201,
          .body = R"({"id":")" + id + R"(","status":")" + (inserted->duplicate ? "duplicate" : "created") +
                  R"("})",
          .headers = {{"Location", "/v1/events/" + id}}};
}

/// The list itself, or an object with the list as `events`.
const json::array* events_of(const json::value& body) {
  if (const json::array* list = body.if_array()) return list;
  const json::object* object = body.if_object();
  const json::value* events = object == nullptr ? nullptr : object->if_contains("events");
  return events == nullptr ? nullptr : events->if_array();
}

}  // namespace

EventLogApi::EventLogApi(Storage& storage, EventLogApiOptions options)
    : storage_(storage),
      options_(checked(std::move(options))),
      clock_(options_.clock != nullptr ? *options_.clock : Clock::system()),
      started_(!options_.starts_later),
      writer_(storage.entry_store(), options_.writer) {}

void EventLogApi::add_routes(http::Router& router) {
  using http::Lane;
  using http::Method;
  const auto admit = [this](const Request& request) -> std::optional<Problem> {
    return options_.access == nullptr ? std::nullopt : options_.access->refusal(request, Role::operator_);
  };
  // What needs the tables waits until they are there.
  const auto started = [this](Role role, auto verb) {
    return [this, role, verb](const Request& request, const Reply& reply) {
      if (options_.access != nullptr) {
        const Access::Verdict verdict = options_.access->decide(request, role);
        if (!verdict.caller) {
          reply(to_response(verdict.problem));
          return;
        }
      }
      if (started_) {
        verb(request, reply);
      } else {
        reply(to_response(starting(storage_)));
      }
    };
  };
  router.add({.method = Method::post,
              .pattern = "/v1/events",
              .lane = Lane::write,
              .body_limit = options_.event_bytes,
              .admit = admit,
              .late = late_write(),
              .handler = started(Role::operator_, [this](const Request& request, const Reply& reply) {
                post_one(request, reply);
              })});
  router.add({.method = Method::post,
              .pattern = "/v1/events/batch",
              .lane = Lane::write,
              .body_limit = options_.batch_bytes,
              .admit = admit,
              .late = late_write(),
              .handler = started(Role::operator_, [this](const Request& request, const Reply& reply) {
                post_batch(request, reply);
              })});
  router.add({.method = Method::get,
              .pattern = "/v1/events",
              .lane = Lane::read,
              .late = late_read(),
              .handler = started(Role::viewer, [this](const Request& request, const Reply& reply) {
                reply(find(request));
              })});
  router.add({.method = Method::get,
              .pattern = "/v1/events/{id}",
              .lane = Lane::read,
              .late = late_read(),
              .handler = started(Role::viewer, [this](const Request& request, const Reply& reply) {
                reply(get(request));
              })});
}

void EventLogApi::post_one(const Request& request, const Reply& reply) {
  json::monotonic_resource memory;
  const std::optional<json::value> body = parse_body(request.body, &memory, reply);
  if (!body.has_value()) return;
  std::variant<Entry, Errors> parsed = parse_entry(*body, clock_.now());
  if (auto* errors = std::get_if<Errors>(&parsed)) {
    reply(to_response(invalid(*errors)));
    return;
  }
  auto& entry = std::get<Entry>(parsed);
  if (std::optional<Errors> errors = take_key_of_header(request, entry)) {
    reply(to_response(invalid(*errors)));
    return;
  }
  std::vector<Entry> entries;
  entries.push_back(std::move(entry));
  const bool taken = writer_.submit(
      std::move(entries),
      [reply](std::variant<EntryWriter::Outcomes, Error> result) {
        const auto* error = std::get_if<Error>(&result);
        reply(error != nullptr ? to_response(entry_problem(*error))
                               : single_response(std::get<EntryWriter::Outcomes>(result).front()));
      },
      [reply] { return reply.wanted(); });
  if (!taken) reply(to_response(overloaded()));
}

void EventLogApi::post_batch(const Request& request, const Reply& reply) {
  if (!request.header("Idempotency-Key").empty()) {
    reply(to_response(Problem{.status = 400,
                              .code = "idempotency-key-header",
                              .detail = "a batch has no idempotency key of its own",
                              .hint = "give each event its own idempotencyKey, and leave the header out"}));
    return;
  }
  std::vector<Entry> valid;
  auto items = std::make_shared<Items>();
  {
    json::monotonic_resource memory(request.body.size() * 2 + 1024);
    const std::optional<json::value> body = parse_body(request.body, &memory, reply, max_batch_depth);
    if (!body.has_value()) return;
    const json::array* events = events_of(*body);
    if (events == nullptr) {
      reply(to_response(Problem{.status = 422,
                                .code = "invalid-batch",
                                .detail = "a batch is a JSON array of events, or an object with such an "
                                          "array as events",
                                .hint = "send [{...}, {...}]; one event alone goes to /v1/events"}));
      return;
    }
    if (events->size() > options_.max_batch) {
      reply(to_response(Problem{.status = 413,
                                .code = "too-many-events",
                                .detail = "a batch has at most " + std::to_string(options_.max_batch) +
                                          " events, this one has " + std::to_string(events->size()),
                                .hint = "send it in parts"}));
      return;
    }
    const TimePoint now = clock_.now();
    valid.reserve(events->size());
    items->errors.reserve(events->size());
    for (const json::value& event : *events) {
      if (is_deeper(event, entry_depth)) {
        items->errors.push_back(
            {{"", "too-deep", "it has more than " + std::to_string(entry_depth) + " levels"}});
        continue;
      }
      std::variant<Entry, Errors> parsed = parse_entry(event, now);
      if (auto* entry = std::get_if<Entry>(&parsed)) {
        valid.push_back(std::move(*entry));
        items->errors.emplace_back();
      } else {
        items->errors.push_back(std::move(std::get<Errors>(parsed)));
      }
    }
  }
  if (valid.empty()) {
    reply(batch_response(*items, {}));
    return;
  }
  const bool taken = writer_.submit(
      std::move(valid),
      [reply, items](std::variant<EntryWriter::Outcomes, Error> result) {
        const auto* error = std::get_if<Error>(&result);
        reply(error != nullptr ? to_response(entry_problem(*error))
                               : batch_response(*items, std::get<EntryWriter::Outcomes>(result)));
      },
      [reply] { return reply.wanted(); });
  if (!taken) reply(to_response(overloaded()));
}

template <class Run>
Response EventLogApi::answered(const Run& run) {
  try {
    return run();
  } catch (const Error& error) {
    options_.log(LogLevel::error, "postrider: the event log cannot be read: " + what_of(error));
    return to_response(entry_problem(error));
  }
}

Response EventLogApi::find(const Request& request) {
  std::variant<EntryQuery, Errors> parsed = parse_query(request.query);
  if (auto* errors = std::get_if<Errors>(&parsed)) {
    return to_response(Problem{.status = 400,
                               .code = "invalid-parameter",
                               .detail = errors->front().field + ": " + errors->front().detail,
                               .hint = "see docs/eventlog-api.md for the parameters",
                               .errors = *errors});
  }
  return answered([&] {
    const auto& query = std::get<EntryQuery>(parsed);
    const EntryPage page = storage_.entry_store().find(query);
    Response response{.body = R"({"events":[)"};
    for (std::size_t i = 0; i < page.entries.size(); ++i) {
      if (i > 0) response.body += ',';
      append_entry(response.body, page.entries[i]);
    }
    response.body += R"(],"nextCursor":)";
    if (page.more) {
      const StoredEntry& last = page.entries.back();
      append_text(response.body, encode_cursor({last.entry.occurred_at, last.id}, query));
    } else {
      response.body += "null";
    }
    response.body += '}';
    return response;
  });
}

Response EventLogApi::get(const Request& request) {
  return answered([&] {
    const std::optional<EntryId> id = parse_id(request.parameter("id"));
    std::optional<StoredEntry> found;
    if (id.has_value()) found = storage_.entry_store().get(*id);
    if (!found.has_value()) {
      return to_response(
          Problem{.status = 404,
                  .code = "no-such-event",
                  .detail = "no event has this id",
                  .hint = "ids are numbers, as an answer gave them; old events may have been removed"});
    }
    Response response;
    append_entry(response.body, *found);
    return response;
  });
}

}  // namespace postrider::api
