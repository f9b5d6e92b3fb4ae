// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace postrider {

/// An enum that names its values: declare `std::string_view event_name(MyEnum)` (or `aggregate_name`) beside
/// it, found by argument-dependent lookup.
///
///     enum class UserEvents { user_created, user_deleted };
///     constexpr std::string_view event_name(UserEvents e) { return e == UserEvents::user_created ?
///     "UserCreated" : "UserDeleted"; }
template <class E>
concept EventEnum = std::is_enum_v<E> && requires(E e) {
  { event_name(e) } -> std::convertible_to<std::string_view>;
};
template <class E>
concept AggregateEnum = std::is_enum_v<E> && requires(E e) {
  { aggregate_name(e) } -> std::convertible_to<std::string_view>;
};

/// The name of a kind of event: from a string, or from your enum. Its length (1 to 128 characters) is checked
/// when an event is built.
class EventType {
 public:
  EventType(std::string name) : name_(std::move(name)) {}  // NOLINT(google-explicit-constructor)
  EventType(std::string_view name) : name_(name) {}        // NOLINT(google-explicit-constructor)
  EventType(const char* name) : name_(name) {}             // NOLINT(google-explicit-constructor)
  template <EventEnum E>
  EventType(E value) : name_(std::string_view(event_name(value))) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  friend bool operator==(const EventType&, const EventType&) = default;

 private:
  std::string name_;
};

/// The name of a kind of aggregate (at most 64 characters): from a string, or from your enum.
class AggregateType {
 public:
  AggregateType(std::string name) : name_(std::move(name)) {}  // NOLINT(google-explicit-constructor)
  AggregateType(std::string_view name) : name_(name) {}        // NOLINT(google-explicit-constructor)
  AggregateType(const char* name) : name_(name) {}             // NOLINT(google-explicit-constructor)
  template <AggregateEnum E>
  AggregateType(E value)
      : name_(std::string_view(aggregate_name(value))) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  friend bool operator==(const AggregateType&, const AggregateType&) = default;

 private:
  std::string name_;
};

}  // namespace postrider
