// SPDX-License-Identifier: Apache-2.0
#include "queue/handler_registry.hpp"

#include <utility>

#include "core/text_bounds.hpp"
#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

constexpr std::size_t max_id_chars = 128;

void check_id(const std::string& id) {
  const auto chars = utf8_length(id);
  if (!chars || *chars < 1 || *chars > max_id_chars || id.find('\0') != std::string::npos ||
      id.find('#') != std::string::npos) {
    throw Error(ErrorCode::invalid_argument, "cannot register handler '" + utf8_repaired(id) + "'",
                "its id must have 1 to 128 characters of UTF-8, without '#'",
                "results are stored under this id: choose one that stays the same");
  }
}

}  // namespace

void HandlerRegistry::add(std::optional<std::string> type, Handler handler) {
  check_id(handler.id);
  // An empty one, from a setting that is missing, must not mean all events.
  if (type)
    check_text_bounds("cannot register handler '" + handler.id + "'", "event type", *type, 1,
                      EventLimits::type_chars);
  if (!handler.function) {
    throw Error(ErrorCode::invalid_argument, "cannot register handler '" + handler.id + "'",
                "its function is empty");
  }
  const MutexLock lock(mutex_);
  if (!ids_.insert(handler.id).second) {
    throw Error(ErrorCode::invalid_argument, "cannot register handler '" + handler.id + "'",
                "a handler with this id is registered already",
                "give each handler an id of its own, also across event types");
  }
  List& list = type ? by_type_[*std::move(type)] : for_all_;
  list.push_back(std::make_shared<const Handler>(std::move(handler)));
  found_.clear();
}

std::shared_ptr<const HandlerRegistry::List> HandlerRegistry::find(std::string_view type) const {
  const MutexLock lock(mutex_);
  const auto own = by_type_.find(type);
  const std::string_view key = own == by_type_.end() ? std::string_view() : type;
  const auto known = found_.find(key);
  if (known != found_.end()) return known->second;
  List list = own == by_type_.end() ? List() : own->second;
  list.insert(list.end(), for_all_.begin(), for_all_.end());
  return found_.emplace(key, std::make_shared<const List>(std::move(list))).first->second;
}

}  // namespace postrider
