// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "postrider/webhook_sink.hpp"
#include "sinks/receiver.hpp"
#include "sinks/webhook/webhook_server.hpp"

namespace postrider::test {
namespace {

std::string percent_decoded(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned byte = 0;
    if (text[at] == '%' && at + 2 < text.size() &&
        std::from_chars(&text[at + 1], &text[at] + 3, byte, 16).ec == std::errc{}) {
      out += static_cast<char>(byte);
      at += 2;
    } else {
      out += text[at];
    }
  }
  return out;
}

Received received_of(const Posted& posted) {
  constexpr std::string_view prefix = "ce-";
  Received one{.body = posted.body};
  for (const auto& [name, value] : posted.headers) {
    if (name.starts_with(prefix)) {
      one.attributes[name.substr(prefix.size())] = percent_decoded(value);
    } else if (name == "content-type") {
      one.content_type = value;
    } else {
      one.headers[name] = value;
    }
  }
  if (one.attributes.contains("partitionkey")) one.key = one.attributes["partitionkey"];
  return one;
}

class WebhookReceiver final : public Receiver {
 public:
  std::shared_ptr<Sink> sink(const SinkSettings& settings) override {
    return webhook_sink({.url = server_.url("/events"),
                         .secrets = {"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="},
                         .timeout = settings.timeout,
                         .allow_private = true,
                         .cloud_events = {.mode = settings.mode},
                         .limits = settings.limits});
  }
  std::vector<Received> received() override {
    const std::vector<Posted>& posted = server_.posted();
    for (std::size_t at = received_.size(); at < posted.size(); ++at) {
      received_.push_back(received_of(posted[at]));
    }
    return received_;
  }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }
  void freeze() override { server_.freeze(); }
  void thaw() override { server_.thaw(); }

 private:
  WebhookServer server_;
  std::vector<Received> received_;
};

}  // namespace

std::unique_ptr<Receiver> make_receiver() {
  return std::make_unique<WebhookReceiver>();
}

}  // namespace postrider::test
