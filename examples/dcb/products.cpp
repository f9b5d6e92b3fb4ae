// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "dcb.hpp"

namespace dcb {

using namespace postrider;

namespace {

/// Prices that are good now: the last one, and those that were replaced a short time ago.
struct Prices {
  struct Price {
    std::int64_t amount;
    std::optional<TimePoint> replaced;
  };
  std::vector<Price> all{};

  void set(std::int64_t amount, TimePoint since) {
    if (!all.empty()) all.back().replaced = since;
    all.push_back({amount, std::nullopt});
  }
  [[nodiscard]] bool good(std::int64_t amount, TimePoint now) const {
    return std::any_of(all.begin(), all.end(), [&](const Price& price) {
      return price.amount == amount && (!price.replaced || now - *price.replaced <= Products::grace);
    });
  }
};

}  // namespace

void Products::define(const std::string& product, std::int64_t price) {
  store_.append({AppendEvent::builder("ProductDefined")
                     .tag("product", product)
                     .data(std::to_string(price))
                     .occurred_at(now_())});
}

void Products::change_price(const std::string& product, std::int64_t price) {
  store_.append({AppendEvent::builder("ProductPriceChanged")
                     .tag("product", product)
                     .data(std::to_string(price))
                     .occurred_at(now_())});
}

void Products::order(const std::map<std::string, std::int64_t>& displayed_prices) {
  std::vector<QueryItem> items;
  for (const auto& [product, price] : displayed_prices) {
    items.push_back({.types = {"ProductDefined", "ProductPriceChanged"}, .tags = {{"product", product}}});
  }
  const DecisionModel decision(Query::of(std::move(items)));
  const auto outcome = CommandExecutor(store_).execute([&](EventStore& store) {
    const auto model = decision.project(
        store,
        Projector<std::map<std::string, Prices>>{.apply = [](auto& products, const StoredEvent& event) {
          products[event.tags().front().value].set(std::stoll(std::string(event.data())),
                                                   event.occurred_at());
        }});
    AppendEventBuilder ordered = AppendEvent::builder("ProductsOrdered");
    for (const auto& [product, price] : displayed_prices) {
      const auto known = model.state().find(product);
      if (known == model.state().end()) throw Refused("no such product: " + product);
      if (!known->second.good(price, now_())) throw Refused("the price of " + product + " has changed");
      ordered.tag("product", product);
    }
    return CommandResult::conditional({ordered.occurred_at(now_())},
                                      decision.to_append_condition(model.cursor));
  });
  if (!outcome.is_done()) throw Refused("too busy, try again");
}

}  // namespace dcb
