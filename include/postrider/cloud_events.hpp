// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/sink.hpp"

namespace postrider {

enum class CloudEventsMode : std::uint8_t {
  binary,      ///< attributes beside the payload, which stays as it is
  structured,  ///< one JSON object with attributes and payload
};

struct CloudEventsOptions {
  CloudEventsMode mode = CloudEventsMode::binary;
  /// Who speaks: a URI reference. Together with the id it names an event in the whole world.
  std::string source = "/postrider";

  /// Throws Error(invalid_argument) for a source that is empty, longer than 1024 bytes, or has characters
  /// that no URI has.
  void check() const;
};

/// A message in the form of CloudEvents 1.0, as a sink puts it on the wire. Fill it again and again: it keeps
/// its memory. Views point into the message it was filled from, and into itself.
class CloudEvent {
 public:
  struct Attribute {
    std::string_view name;  ///< without any prefix: "id", "type"
    std::string_view value;
  };
  struct Header {
    std::string_view name;
    std::string_view value;
  };

  void fill(const SinkMessage& message, const CloudEventsOptions& options);

  /// Of the binary mode, `specversion` first; without `datacontenttype`, which is `content_type`. Empty in
  /// structured mode. Besides the required ones: `time`, `subject` (the aggregate's id), `partitionkey`,
  /// `sequence` (the position, of the same width always), `correlationid`, `causationid`, `tenantid`,
  /// `aggregatetype`, `topic`, `epoch`, `tags` (a JSON array), and `eventheaders` (all headers as a JSON
  /// object) when one of them cannot be a header outside.
  [[nodiscard]] const std::vector<Attribute>& attributes() const noexcept { return attributes_; }
  /// The event's own headers that can be headers outside: `traceparent` and `tracestate` untouched, and all
  /// whose name is a token of HTTP that means nothing to a transport, with a value of printable ASCII. In
  /// both modes.
  [[nodiscard]] const std::vector<Header>& headers() const noexcept { return headers_; }
  [[nodiscard]] std::string_view content_type() const noexcept { return content_type_; }
  [[nodiscard]] std::string_view body() const noexcept { return body_; }
  [[nodiscard]] std::string_view id() const noexcept { return id_; }
  [[nodiscard]] std::string_view key() const noexcept { return key_; }

 private:
  void collect(const SinkMessage& message, const CloudEventsOptions& options);
  void write_json(const Event& event);

  std::string id_;
  std::string_view key_;
  std::string time_;
  std::string sequence_;
  std::string epoch_;
  std::string tags_;
  std::string json_;
  std::vector<Attribute> attributes_;
  std::vector<Header> headers_;
  std::string_view content_type_;
  std::string_view body_;
};

/// As the HTTP binding has attribute values in headers: what is not printable ASCII, and space, quote and
/// percent, become %XX.
[[nodiscard]] std::string cloud_events_header_value(std::string_view value);

}  // namespace postrider
