// SPDX-License-Identifier: Apache-2.0
#include "app/demo/encore.hpp"

#include "app/demo/paid_order.hpp"
#include "app/demo/queue_worker.hpp"
#include "app/demo/resort.hpp"
#include "app/demo/sales.hpp"
#include "app/demo/shop.hpp"
#include "app/demo/wallets.hpp"
#include "postrider/open.hpp"

namespace postrider::demo {

using namespace std::chrono_literals;

void play_encore(Stage& stage, const Backstage& backstage) {
  constexpr int first_number = 10'000;  // beyond those of the chapters
  const std::unique_ptr<Storage> storage = open(stage.place().url());
  Shop shop(*storage);
  EventQueue queue{*storage, queue_options()};
  EventManager manager{queue};
  register_handlers(manager, *storage, Stock::mended);
  manager.start();
  ProjectionRunner projections{*storage, {.log = queue_options().log}};
  add_sales(projections);
  projections.start();
  EventStore store{*storage};
  Tally tally;
  const std::unique_ptr<AsyncEventLogger> logger =
      resort_logger(backstage.url(), stage.place().encore_spillover(), false);
  for (int n = 0; stage.pause(500ms); ++n) {
    (void)shop.take_order(n % 12 == 11);
    if (n % 2 == 0) queue.publish(PaidOrder{first_number + n, "postcard"});
    if (n % 3 == 0) transfer(store, n % wallets, (n + 1) % wallets, 1, tally);
    if (n % 8 == 0 && logger != nullptr)
      book(*logger, std::uint64_t{first_number} + static_cast<unsigned>(n));
  }
  manager.stop();
  projections.stop();
  if (logger != nullptr) logger->shutdown();
}

}  // namespace postrider::demo
