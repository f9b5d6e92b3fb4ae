// SPDX-License-Identifier: Apache-2.0
#include "outbox/registry.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "postrider/error.hpp"

namespace postrider {
namespace {

std::string run_all(const ListenerRegistry& registry, std::string_view type, std::string& trace) {
  trace.clear();
  const Event event = Event::json("T", "{}");
  for (const auto& listener : *registry.listeners_for(type)) (*listener)(event, {Attempt{0}, Source::hot});
  return trace;
}

TEST(ListenerRegistry, RunsExactTypesInOrderThenThoseForAll) {
  std::string trace;
  ListenerRegistry registry;
  registry.add_for_all([&](const Event&) { trace += "*"; });
  registry.add("A", [&](const Event&) { trace += "1"; });
  registry.add("B", [&](const Event&) { trace += "b"; });
  registry.add("A", [&](const Event&) { trace += "2"; });
  registry.add_for_all([&](const Event&) { trace += "+"; });
  EXPECT_EQ(run_all(registry, "A", trace), "12*+");
  EXPECT_EQ(run_all(registry, "B", trace), "b*+");
  EXPECT_EQ(run_all(registry, "unknown", trace), "*+");
}

TEST(ListenerRegistry, ASnapshotDoesNotChange) {
  ListenerRegistry registry;
  registry.add("A", [](const Event&) {});
  const auto before = registry.listeners_for("A");
  registry.add("A", [](const Event&) {});
  registry.add_for_all([](const Event&) {});
  EXPECT_EQ(before->size(), 1U);
  EXPECT_EQ(registry.listeners_for("A")->size(), 3U);
}

TEST(ListenerRegistry, RefusesAnEmptyType) {
  ListenerRegistry registry;
  try {
    registry.add("", [](const Event&) {});
    FAIL() << "an empty type was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("on_all()"), std::string::npos) << error.what();
  }
}

TEST(ListenerRegistry, MayBeExtendedWhileItIsRead) {
  ListenerRegistry registry;
  registry.add("A", [](const Event&) {});
  std::atomic<bool> end = false;
  std::thread reader([&] {
    while (!end) EXPECT_GE(registry.listeners_for("A")->size(), 1U);
  });
  for (int i = 0; i < 500; ++i) registry.add(i % 2 == 0 ? "A" : "B", [](const Event&) {});
  end = true;
  reader.join();
  EXPECT_EQ(registry.listeners_for("A")->size(), 251U);
}

}  // namespace
}  // namespace postrider
