// SPDX-License-Identifier: Apache-2.0
// The shop itself: this is what using the library looks like.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <postrider/postrider.hpp>
#include <random>
#include <stdexcept>
#include <system_error>

#include "shop.hpp"

namespace shop {

namespace {

using namespace std::chrono_literals;

std::atomic<bool> closing = false;

/// A book that survives the process: every line is one write(2) to a file opened for appending.
class Book {
 public:
  explicit Book(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), path.string());
  }
  ~Book() { ::close(file_); }
  Book(const Book&) = delete;
  Book& operator=(const Book&) = delete;

  void note(std::string_view id, std::string_view order) const {
    const std::string line = std::string(id) + " " + std::string(order) + "\n";
    if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      throw std::system_error(errno, std::generic_category(), "cannot write to the book");
    }
  }

 private:
  int file_;
};

/// Takes one order: the business row and its event in one transaction. Some customers change their mind.
void take_order(postrider::Storage& storage, postrider::Outbox& outbox, Counters& counters,
                const Book& cancelled, bool changes_mind) {
  const auto number = counters.next_order.fetch_add(1) + 1;
  const std::string order = std::to_string(number);

  auto tx = storage.begin();
  tx.execute("insert into shop_order (number, item) values (?, ?)", number, "postcard");
  const auto event = postrider::Event::builder("OrderPlaced")
                         .aggregate("Order", order)
                         .json(R"({"order":)" + order + R"(,"item":"postcard"})")
                         .build();
  outbox.publish(tx, event);
  if (changes_mind) {
    cancelled.note(event.id().view(), order);
    tx.rollback();
    counters.rolled_back.fetch_add(1);
  } else {
    tx.commit();
    counters.published.fetch_add(1);
  }
}

}  // namespace

int run_node(const Place& place, bool only_deliver) {
  std::signal(SIGTERM, [](int) { closing = true; });
  Counters& counters = Counters::map(place);
  const Book mails(place.mails());
  const Book cancelled(place.cancelled());

  auto storage = postrider::open(place.url());
  storage->migrate();
  {
    auto tx = storage->begin();
    tx.execute("create table if not exists shop_order (number integer primary key, item text not null)");
    tx.commit();
  }

  postrider::Outbox outbox{*storage,
                           {.retry_base_delay = 50ms,
                            .retry_max_delay = 500ms,
                            .retry_max_attempts = 4,
                            .lease = 2s,
                            .log = [](postrider::LogLevel, std::string_view) {}}};  // the board tells it all
  outbox.on("OrderPlaced", [&](const postrider::Event& event, const postrider::Delivery& delivery) {
    const auto age = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now() -
                                                                           event.occurred_at());
    if (delivery.source == postrider::Source::hot) counters.observe(age);
    const std::size_t luck = std::hash<std::string>{}(event.aggregate_id());
    if (luck % 997 == 0) return postrider::Outcome::failed("the address does not exist");  // until it is dead
    if (luck % 10 == 0 && delivery.failed == postrider::Attempt{0}) {
      counters.retried.fetch_add(1);
      throw std::runtime_error("the mail server is busy");
    }
    mails.note(event.id().view(), event.aggregate_id());
    counters.delivered.fetch_add(1);
    return postrider::Outcome::done();
  });
  outbox.start();

  std::mt19937 luck{std::random_device{}()};
  while (!only_deliver && !closing) take_order(*storage, outbox, counters, cancelled, luck() % 12 == 0);
  // Work off what is left, retries and the leases of a killed predecessor included, unless told to leave.
  while (only_deliver && !closing && outbox.admin().counts().pending > 0) std::this_thread::sleep_for(20ms);
  outbox.stop();
  return 0;
}

}  // namespace shop
