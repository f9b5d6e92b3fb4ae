// SPDX-License-Identifier: Apache-2.0
// A sink as the relay's publisher and as the outbox's listener.
#include <algorithm>
#include <utility>

#include "core/text_bounds.hpp"
#include "postrider/error.hpp"
#include "postrider/sink.hpp"

namespace postrider {
namespace {

/// Where one object serves many topics at the same time, the guard sends their messages together.
constexpr std::size_t callers = 64;

std::string_view key_of(const Event& event) {
  return event.ordering_key().empty() ? event.aggregate_id() : event.ordering_key();
}

std::string_view key_of(const StoredEvent& event, const std::string& tag) {
  if (tag.empty()) return key_of(event.event());
  const Tags& tags = event.tags();
  const auto found = std::find_if(tags.begin(), tags.end(), [&](const Tag& one) { return one.key == tag; });
  return found == tags.end() ? std::string_view() : std::string_view(found->value);
}

class SinkPublisher final : public Publisher {
 public:
  SinkPublisher(std::shared_ptr<Sink> sink, SinkPublisherOptions options)
      : sink_(std::move(sink)), options_(std::move(options)) {
    if (options_.name.empty()) options_.name = sink_->name();
  }

  PublishResult publish_batch(std::span<const StoredEvent> events, const PublishContext& context) override {
    std::vector<SinkMessage> messages;
    messages.reserve(events.size());
    for (const StoredEvent& event : events) {
      messages.push_back({.event = &event.event(),
                          .stored = &event,
                          .topic = context.topic,
                          .epoch = context.epoch,
                          .key = key_of(event, options_.key_tag)});
    }
    return sink_->send(messages);
  }
  std::string name() const override { return options_.name; }
  bool healthy() const override { return sink_->healthy(); }
  std::size_t parallel() const noexcept override { return callers; }

 private:
  std::shared_ptr<Sink> sink_;
  SinkPublisherOptions options_;
};

std::shared_ptr<Sink> not_null(std::shared_ptr<Sink> sink, std::string_view what) {
  if (sink == nullptr) throw Error(ErrorCode::invalid_argument, what, "the sink is null");
  return sink;
}

}  // namespace

std::shared_ptr<Publisher> sink_publisher(std::shared_ptr<Sink> sink, SinkPublisherOptions options) {
  constexpr std::string_view what = "cannot publish to a sink";
  check_text_bounds(what, "key_tag", options.key_tag, 0, Tag::max_key_chars);
  return std::make_shared<SinkPublisher>(not_null(std::move(sink), what), std::move(options));
}

PublishResult send_event(Sink& sink, const Event& event) {
  const SinkMessage message{.event = &event, .key = key_of(event)};
  return sink.send({&message, 1});
}

Listener sink_listener(std::shared_ptr<Sink> sink, Duration retry_after) {
  return Listener([sink = not_null(std::move(sink), "cannot listen for a sink"),
                   retry_after](const Event& event) -> Outcome {
    const PublishResult result = send_event(*sink, event);
    switch (result.kind()) {
      case PublishResult::Kind::all:
        return Outcome::done();
      case PublishResult::Kind::refused:
        return Outcome::failed(result.reason());
      case PublishResult::Kind::unavailable:
        break;
    }
    return Outcome::retry_after(std::max(retry_after, result.retry_after()), result.reason());
  });
}

}  // namespace postrider
