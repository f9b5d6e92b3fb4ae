// SPDX-License-Identifier: Apache-2.0
// Runs all six once: postrider-dcb [url]. Ends with 1 when one of them allows what it must refuse.
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
  bool right = true;
  const auto refused = [&](const char* what, const auto& action) {
    try {
      action();
      right = false;
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

  dcb::OptIn opt_in{store, now};
  opt_in.initiate("ada@example.org", "otp" + run);
  opt_in.confirm("ada@example.org", "otp" + run);
  refused("the same one-time password", [&] { opt_in.confirm("ada@example.org", "otp" + run); });

  dcb::Products products{store, now};
  products.define("p" + run, 100);
  products.change_price("p" + run, 120);
  products.order({{"p" + run, 100}});  // shown before the change
  refused("a price that never was", [&] { products.order({{"p" + run, 90}}); });

  dcb::Orders orders{store};
  for (int click = 1; click <= 2; ++click) {
    const CommandOutcome outcome = orders.place("7", "token" + run);
    std::cout << "click " << click << ": " << to_string(outcome.kind) << "\n";
    right = right && (outcome.kind == CommandOutcome::Kind::appended) == (click == 1);
  }
  return right ? 0 : 1;
}
