// SPDX-License-Identifier: Apache-2.0
#include "sinks/sink_fixture.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <set>

namespace postrider::test {
namespace bj = boost::json;

std::string Received::id() const {
  if (const auto found = attributes.find("id"); found != attributes.end()) return found->second;
  return bj::parse(body).at("id").as_string().c_str();
}

std::vector<Event> SinkConformance::numbered(int count, int keys, const std::string& prefix) {
  std::vector<Event> events;
  for (int i = 0; i < count; ++i) {
    const std::string key = prefix + std::to_string(i % keys);
    events.push_back(Event::builder("Counted")
                         .ordering_key(key)
                         .json("{\"key\":\"" + key + "\",\"n\":" + std::to_string(i / keys) + "}")
                         .build());
  }
  return events;
}

bool SinkConformance::send_all(Sink& sink, std::span<const SinkMessage> all, std::size_t batch,
                               std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!all.empty()) {
    const std::span<const SinkMessage> some = all.first(std::min(batch, all.size()));
    const PublishResult result = sink.send(some);
    EXPECT_NE(result.kind(), PublishResult::Kind::refused) << result.reason();
    all = all.subspan(result.count(some.size()));
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

std::map<std::string, std::vector<int>> SinkConformance::order_by_key(const std::vector<Received>& all) {
  std::map<std::string, std::vector<int>> order;
  std::set<std::string> seen;
  for (const Received& one : all) {
    if (!seen.insert(one.id()).second) continue;
    bj::value body = bj::parse(one.body);
    if (const bj::object& object = body.as_object(); object.contains("data"))
      body = bj::value(object.at("data"));
    order[body.at("key").as_string().c_str()].push_back(static_cast<int>(body.at("n").as_int64()));
  }
  return order;
}

void SinkConformance::expect_complete_and_in_order(int count, int keys, const std::string& prefix) {
  std::map<std::string, std::vector<int>> expected;
  for (int i = 0; i < count; ++i) expected[prefix + std::to_string(i % keys)].push_back(i / keys);
  std::map<std::string, std::vector<int>> found;
  (void)eventually([&] { return (found = order_by_key(receiver_->received())) == expected; }, 10s);
  EXPECT_EQ(found, expected);
}

}  // namespace postrider::test
