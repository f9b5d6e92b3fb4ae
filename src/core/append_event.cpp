// SPDX-License-Identifier: Apache-2.0
#include "postrider/append_event.hpp"

#include <algorithm>
#include <utility>

#include "core/text_bounds.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

constexpr std::string_view what = "event refused";

}  // namespace

void AppendEvent::set_tags(Tags tags) {
  for (const Tag& tag : tags) tag.check();
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  if (tags.size() > max_tags) {
    throw Error(ErrorCode::invalid_argument, what,
                "it has " + std::to_string(tags.size()) + " tags, at most " + std::to_string(max_tags) +
                    " are allowed",
                "tags say what an event is about; the rest belongs into its data");
  }
  tags_ = std::move(tags);
}

AppendEvent AppendEvent::with(Tag tag) const {
  AppendEvent more = *this;
  Tags tags = tags_;
  tags.push_back(std::move(tag));
  more.set_tags(std::move(tags));
  return more;
}

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
  has_bytes_ = true;
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
  if (has_data_ && has_bytes_) {
    throw Error(ErrorCode::invalid_argument, what, "both data() and bytes() were given",
                "give at most one of them");
  }
  if (!has_data_ && !has_bytes_) event_.json("{}");
  AppendEvent built(event_.build());
  built.set_tags(std::move(tags_));
  check_text_bounds(what, "correlation id", correlation_id_, 0, AppendEvent::max_id_chars);
  check_text_bounds(what, "causation id", causation_id_, 0, AppendEvent::max_id_chars);
  built.correlation_id_ = std::move(correlation_id_);
  built.causation_id_ = std::move(causation_id_);
  return built;
}

}  // namespace postrider
