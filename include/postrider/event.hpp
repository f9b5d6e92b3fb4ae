// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "postrider/clock.hpp"
#include "postrider/event_id.hpp"
#include "postrider/event_type.hpp"

namespace postrider {

using Headers = std::map<std::string, std::string, std::less<>>;

/// The bounds of an event; `EventBuilder::build` refuses what is outside, naming the field.
struct EventLimits {
  static constexpr std::size_t payload_bytes = 1'048'576;
  static constexpr std::size_t type_chars = 128;
  static constexpr std::size_t aggregate_type_chars = 64;
  static constexpr std::size_t aggregate_id_chars = 128;
  static constexpr std::size_t tenant_chars = 64;
  static constexpr std::size_t ordering_key_chars = 200;
  static constexpr std::size_t headers = 64;
  static constexpr std::size_t header_name_chars = 128;
  static constexpr std::size_t header_value_bytes = 4'096;
  static constexpr std::size_t json_depth = 256;
  /// Times that every database can store.
  static constexpr TimePoint earliest{std::chrono::sys_days{std::chrono::year{1000} / 1 / 1}};
  static constexpr TimePoint latest{std::chrono::sys_days{std::chrono::year{9999} / 12 / 31}};
};

enum class PayloadKind : std::uint8_t { json, bytes };

class EventBuilder;

/// Something that happened. Immutable; copying shares the one payload, so an event is passed around by value.
/// Text fields are UTF-8 without NUL.
class Event {
 public:
  /// Short forms for an event that has a type and a payload only. They check like `EventBuilder::build`.
  [[nodiscard]] static Event json(EventType type, std::string payload);
  [[nodiscard]] static Event bytes(EventType type, std::string payload);
  [[nodiscard]] static EventBuilder builder(EventType type);

  [[nodiscard]] const EventId& id() const noexcept;
  [[nodiscard]] const std::string& type() const noexcept;
  [[nodiscard]] TimePoint occurred_at() const noexcept;
  /// Empty when not set, as are the ones below.
  [[nodiscard]] const std::string& aggregate_type() const noexcept;
  [[nodiscard]] const std::string& aggregate_id() const noexcept;
  [[nodiscard]] const std::string& tenant_id() const noexcept;
  /// Events of the same key are delivered one after the other, in the order of their publication. Of an event
  /// read back from the database: the key that was used, see OutboxOptions::order_by_aggregate.
  [[nodiscard]] const std::string& ordering_key() const noexcept;
  /// Not before this time, when set. Never set in an event read back from the database.
  [[nodiscard]] std::optional<TimePoint> deliver_at() const noexcept;
  [[nodiscard]] const Headers& headers() const noexcept;
  [[nodiscard]] PayloadKind payload_kind() const noexcept;
  /// The payload as published, byte for byte. Valid as long as any copy of this event lives.
  [[nodiscard]] std::string_view payload() const noexcept;
  [[nodiscard]] std::span<const std::byte> payload_bytes() const noexcept;
  /// The headers as one JSON object, made once at build time; empty when there are none.
  [[nodiscard]] std::string_view headers_json() const noexcept;

 private:
  friend class EventBuilder;
  struct Fields;
  explicit Event(std::shared_ptr<const Fields> fields) noexcept : fields_(std::move(fields)) {}
  std::shared_ptr<const Fields> fields_;
};

/// Collects the parts of an event. Give exactly one of `json` and `bytes`.
class EventBuilder {
 public:
  explicit EventBuilder(EventType type);
  EventBuilder(EventBuilder&&) noexcept;
  EventBuilder& operator=(EventBuilder&&) noexcept;
  ~EventBuilder();

  EventBuilder& id(EventId id);               ///< default: a new ULID
  EventBuilder& occurred_at(TimePoint time);  ///< default: now
  EventBuilder& aggregate(AggregateType type, std::string id);
  EventBuilder& aggregate_type(AggregateType type);
  EventBuilder& aggregate_id(std::string id);
  EventBuilder& tenant(std::string id);
  EventBuilder& ordering_key(std::string key);
  EventBuilder& deliver_at(TimePoint time);
  /// Any other precision, for example `std::chrono::system_clock::now() + 2s`: cut to microseconds.
  template <class D>
  EventBuilder& deliver_at(std::chrono::sys_time<D> time) {
    return deliver_at(std::chrono::floor<Duration>(time));
  }
  template <class D>
  EventBuilder& occurred_at(std::chrono::sys_time<D> time) {
    return occurred_at(std::chrono::floor<Duration>(time));
  }
  EventBuilder& header(std::string name, std::string value);
  EventBuilder& headers(Headers headers);
  EventBuilder& json(std::string payload);
  EventBuilder& bytes(std::string payload);

  /// Throws Error(invalid_argument) naming the field that is missing, doubled or out of bounds; a malformed
  /// JSON payload is reported with its position. The builder is spent afterwards.
  [[nodiscard]] Event build();

  /// For stores: rebuilds an event from its row. `headers_json` is decoded and checked to be an object of
  /// strings. Throws Error(invalid_argument) like `build`.
  EventBuilder& headers_json(std::string_view text);

 private:
  [[nodiscard]] Event::Fields& fields();
  std::shared_ptr<Event::Fields> fields_;  // null when spent; shared, so that the event has no other one
  bool has_json_ = false;
  bool has_bytes_ = false;
};

}  // namespace postrider
