// SPDX-License-Identifier: Apache-2.0
#include "app/http/message.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace postrider::http {
namespace {

TEST(MessageTest, ARefusalThatRepeatsBytesOfTheClientIsStillJson) {
  const Response response = to_response({.status = 400,
                                         .code = "invalid-parameter",
                                         .detail = "there is no parameter '\xFF' here",
                                         .hint = "not \xC3",
                                         .errors = {{"\xFE", "unknown", "\x80"}}});
  boost::json::error_code error;
  const boost::json::value body = boost::json::parse(response.body, error);  // which refuses what is no UTF-8
  ASSERT_FALSE(error) << response.body;
  EXPECT_EQ(body.at("detail").as_string(), "there is no parameter '\uFFFD' here");
  EXPECT_EQ(body.at("errors").at(0).at("field").as_string(), "\uFFFD");
}

}  // namespace
}  // namespace postrider::http
