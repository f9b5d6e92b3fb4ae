// SPDX-License-Identifier: Apache-2.0
#include "app/demo/queue_worker.hpp"

#include <sys/resource.h>

#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "app/demo/paid_order.hpp"
#include "app/demo/stage.hpp"
#include "postrider/open.hpp"

namespace postrider::demo {
namespace {

using namespace std::chrono_literals;

constexpr int every_which_waits = 7;  // of these the first mail fails

/// Its row and its success commit together: one invoice for each order, whatever crashes.
struct InvoiceHandler {
  static constexpr std::string_view id = "invoice";
  Storage& storage;

  void handle(const PaidOrder& order, HandlerContext& context) const {
    Transaction tx = storage.begin();
    tx.execute("insert into shop_invoice (number) values (?)", order.number);
    context.complete(tx);
    tx.commit();
  }
};

EventHandledResult send_mail(const PaidOrder& order, HandlerContext& context) {
  if (order.number == hopeless_order) {
    return EventHandledResult::unrecoverable_error("the address does not exist");
  }
  if (order.number % every_which_waits == 0 && context.failed() == Attempt{0}) {
    throw std::runtime_error("the mail server is busy");  // the same as returning a transient error
  }
  return EventHandledResult::success();
}

void take_from_stock(const PaidOrder& order, HandlerContext& context) {
  if (order.number == crashing_order && context.crashes() == 0) std::abort();
  if (order.number == poisonous_order) std::abort();
  std::this_thread::sleep_for(5ms);  // the way to the shelf
}

}  // namespace

QueueOptions queue_options() {
  return {.abandoned_timeout = 1s, .log = [](LogLevel, std::string_view) {}};
}

void register_handlers(EventManager& manager, Storage& storage, Stock stock) {
  manager.register_handler(InvoiceHandler{storage});
  manager.register_handler<PaidOrder>("mail", send_mail);
  if (stock == Stock::buggy) {
    manager.register_handler<PaidOrder>("stock", take_from_stock);
  } else {
    manager.register_handler<PaidOrder>("stock", [](const PaidOrder&) {});
  }
}

int run_worker(const Place& place) {
  const cli::Interrupts interrupts;
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const std::unique_ptr<Storage> storage = open(place.url());
  EventQueue queue{*storage, queue_options()};
  EventManager manager{queue, {.batch_size = 20, .retry_base_delay = 200ms}};
  register_handlers(manager, *storage, Stock::buggy);
  manager.start();
  while (!interrupts.wait_for(500ms)) {
  }
  manager.stop();
  return 0;
}

}  // namespace postrider::demo
