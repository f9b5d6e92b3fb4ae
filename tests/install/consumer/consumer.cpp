// SPDX-License-Identifier: Apache-2.0
// A user's first program: publish in a transaction, see the listener run.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iostream>
#include <string>

#include <postrider/postrider.hpp>

using namespace postrider;

int main() {
  std::string pattern = (std::filesystem::temp_directory_path() / "postrider-consumer-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    std::cerr << "cannot make a temporary folder\n";
    return 1;
  }
  const std::filesystem::path folder = pattern;
  int result = 1;
  {
    auto storage = open("sqlite:" + (folder / "shop.db").string());
    storage->migrate();

    std::promise<std::string> seen;
    Outbox outbox{*storage, {.workers = 1}};
    outbox.on("UserCreated", [&](const Event& e) { seen.set_value(std::string(e.payload())); });
    outbox.start();

    auto tx = storage->begin();
    tx.execute("create table users(name text)");
    tx.execute("insert into users(name) values (?)", "Ada");
    outbox.publish(tx, Event::json("UserCreated", R"({"name":"Ada"})"));
    tx.commit();

    auto payload = seen.get_future();
    if (payload.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
      std::cerr << "the listener did not run within 30 s of the commit\n";
    } else if (const std::string text = payload.get(); text.find("Ada") == std::string::npos) {
      std::cerr << "the listener saw another payload: " << text << "\n";
    } else {
      std::cout << "the listener ran\n";
      result = 0;
    }
  }
  std::filesystem::remove_all(folder);
  return result;
}
