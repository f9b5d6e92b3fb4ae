// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "postrider/event.hpp"

namespace postrider {

/// How a struct of yours becomes an event and back; the one place to specialise:
///
///     template <>
///     struct postrider::EventCodec<OrderPlaced> {
///       static constexpr std::string_view type = "OrderPlaced";
///       static std::string to_json(const OrderPlaced& order);
///       static OrderPlaced from_json(std::string_view json);   // throws when it cannot
///     };
template <class T>
struct EventCodec;

template <class T>
concept TypedEvent = requires(const T& value, std::string_view json) {
  {std::string_view(EventCodec<T>::type)};
  { EventCodec<T>::to_json(value) } -> std::convertible_to<std::string>;
  { EventCodec<T>::from_json(json) } -> std::convertible_to<T>;
};

/// Add what else it needs with `.aggregate(…)`, `.ordering_key(…)`, then `.build()`.
template <TypedEvent T>
[[nodiscard]] EventBuilder event_builder(const T& value) {
  EventBuilder builder = Event::builder(EventType(std::string_view(EventCodec<T>::type)));
  builder.json(EventCodec<T>::to_json(value));
  return builder;
}

template <TypedEvent T>
[[nodiscard]] Event to_event(const T& value) {
  return event_builder(value).build();
}

}  // namespace postrider
