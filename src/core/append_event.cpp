// SPDX-License-Identifier: Apache-2.0
#include "postrider/append_event.hpp"

#include <algorithm>
#include <utility>

#include "core/text_bounds.hpp"
#include "postrider/error.hpp"

namespace postrider {

AppendEventBuilder AppendEvent::builder(EventType type) {
  return AppendEventBuilder(std::move(type));
}

AppendEventBuilder::AppendEventBuilder(EventType type) : event_(std::move(type)) {}

AppendEventBuilder& AppendEventBuilder::id(EventId id) {
  event_.id(id);
  return *this;
}
AppendEventBuilder& AppendEventBuilder::occurred_at(TimePoint time) {
  event_.occurred_at(time);
  return *this;
}
AppendEventBuilder& AppendEventBuilder::tag(std::string key, std::string value) {
  return tag(Tag{.key = std::move(key), .value = std::move(value)});
}
AppendEventBuilder& AppendEventBuilder::tag(Tag tag) {
  tags_.push_back(std::move(tag));
  return *this;
}
AppendEventBuilder& AppendEventBuilder::tags(Tags tags) {
  std::move(tags.begin(), tags.end(), std::back_inserter(tags_));
  return *this;
}
AppendEventBuilder& AppendEventBuilder::data(std::string json) {
  event_.json(std::move(json));
  has_data_ = true;
  return *this;
}
AppendEventBuilder& AppendEventBuilder::bytes(std::string data) {
  event_.bytes(std::move(data));
  has_data_ = true;
  return *this;
}
AppendEventBuilder& AppendEventBuilder::metadata(std::string name, std::string value) {
  event_.header(std::move(name), std::move(value));
  return *this;
}
AppendEventBuilder& AppendEventBuilder::correlation_id(std::string id) {
  correlation_id_ = std::move(id);
  return *this;
}
AppendEventBuilder& AppendEventBuilder::causation_id(std::string id) {
  causation_id_ = std::move(id);
  return *this;
}

AppendEvent AppendEventBuilder::build() {
  if (!has_data_) event_.json("{}");
  AppendEvent built(event_.build());
  constexpr std::string_view what = "event refused";
  for (const Tag& tag : tags_) tag.check();
  std::sort(tags_.begin(), tags_.end());
  tags_.erase(std::unique(tags_.begin(), tags_.end()), tags_.end());
  if (tags_.size() > AppendEvent::max_tags) {
    throw Error(ErrorCode::invalid_argument, what,
                "it has " + std::to_string(tags_.size()) + " tags, at most " +
                    std::to_string(AppendEvent::max_tags) + " are allowed",
                "tags say what an event is about; the rest belongs into its data");
  }
  check_text_bounds(what, "correlation id", correlation_id_, 0, AppendEvent::max_id_chars);
  check_text_bounds(what, "causation id", causation_id_, 0, AppendEvent::max_id_chars);
  built.tags_ = std::move(tags_);
  built.correlation_id_ = std::move(correlation_id_);
  built.causation_id_ = std::move(causation_id_);
  return built;
}

}  // namespace postrider
