// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

#include "postrider/event_codec.hpp"

namespace postrider::demo {

struct PaidOrder {
  int number = 0;
  std::string item;
};

}  // namespace postrider::demo

/// How the struct becomes an event and back; a real shop uses its JSON library.
template <>
struct postrider::EventCodec<postrider::demo::PaidOrder> {
  static constexpr std::string_view type = "OrderPaid";
  static std::string to_json(const demo::PaidOrder& order) {
    return R"({"order":)" + std::to_string(order.number) + R"(,"item":")" + order.item + R"("})";
  }
  static demo::PaidOrder from_json(std::string_view json) {
    int number = 0;
    char item[32];
    if (std::sscanf(std::string(json).c_str(), R"({"order":%d,"item":"%31[a-z]"})", &number, item) != 2) {
      throw std::invalid_argument("not an order");
    }
    return {number, item};
  }
};
