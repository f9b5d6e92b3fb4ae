// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "postrider/redis_sink.hpp"
#include "sinks/redis/redis_entries.hpp"

namespace postrider::test {
namespace {

std::string text(const redisReply& reply) {
  return {reply.str, reply.len};
}

Received read_entry(const redisReply& fields) {
  Received one;
  for (std::size_t i = 0; i + 1 < fields.elements; i += 2) {
    const std::string name = text(*fields.element[i]);
    std::string value = text(*fields.element[i + 1]);
    if (name == "data") {
      one.body = std::move(value);
    } else if (name == "key") {
      one.key = std::move(value);
    } else if (name == "content-type") {
      one.content_type = std::move(value);
    } else if (name.starts_with("ce_")) {
      one.attributes[name.substr(3)] = std::move(value);
    } else if (name.starts_with("h_")) {
      one.headers[name.substr(2)] = std::move(value);
    } else {
      throw std::runtime_error("an entry has the field " + name);
    }
  }
  return one;
}

class RedisReceiver final : public Receiver {
 public:
  std::shared_ptr<Sink> sink(const SinkSettings& settings) override {
    return redis_sink({.url = server_.url(),
                       .stream = "events",
                       .timeout = settings.timeout,
                       .cloud_events = {.mode = settings.mode},
                       .limits = settings.limits});
  }
  std::vector<Received> received() override { return entries_of(server_, "events"); }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }
  void freeze() override { server_.freeze(); }
  void thaw() override { server_.thaw(); }

 private:
  RedisServer server_;
};

}  // namespace

std::vector<Received> entries_of(RedisServer& server, const std::string& stream) {
  std::vector<Received> all;
  std::string after = "-";
  for (;;) {
    const auto page = server.ask({"XRANGE", stream, after, "+", "COUNT", "1000"});
    if (page->elements == 0) return all;
    for (std::size_t i = 0; i < page->elements; ++i) {
      after = "(" + text(*page->element[i]->element[0]);
      all.push_back(read_entry(*page->element[i]->element[1]));
    }
  }
}

std::unique_ptr<Receiver> make_receiver() {
  return std::make_unique<RedisReceiver>();
}

}  // namespace postrider::test
