// SPDX-License-Identifier: Apache-2.0
// Runs all of them once: postrider-dcb [url]
#include <iostream>
#include <thread>
#include <vector>

#include "dcb.hpp"

int main(int argc, char** argv) {
  using namespace postrider;
  auto storage = open(argc > 1 ? argv[1] : "sqlite:dcb.db");
  storage->migrate();
  EventStore store{*storage};
  // The store keeps what earlier runs have appended, so each run has names of its own.
  const std::string run = std::to_string(static_cast<std::int64_t>(store.head()));
  const auto now = [] { return Clock::system().now(); };
  const auto refused = [](const char* what, const auto& action) {
    try {
      action();
      std::cout << what << ": allowed?\n";
    } catch (const dcb::Refused& why) {
      std::cout << what << ": refused, " << why.what() << "\n";
    }
  };

  dcb::Courses courses{store};
  courses.define("c" + run, 1);
  courses.subscribe("ada" + run, "c" + run);
  refused("second student", [&] { courses.subscribe("bob" + run, "c" + run); });

  dcb::Usernames names{store, now};
  names.register_account("1", "ada" + run);
  refused("the same username", [&] { names.register_account("2", "ada" + run); });

  std::vector<std::thread> clerks;
  for (int clerk = 0; clerk < 4; ++clerk) {
    clerks.emplace_back([&] {
      for (int i = 0; i < 5; ++i) dcb::Invoices(store).create("{}");
    });
  }
  for (std::thread& clerk : clerks) clerk.join();
  std::cout << "the next invoice is number " << dcb::Invoices(store).create("{}") << "\n";

  dcb::Orders orders{store};
  for (int click = 1; click <= 2; ++click) {
    std::cout << "click " << click << ": " << to_string(orders.place("7", "token" + run).kind) << "\n";
  }
}
