// SPDX-License-Identifier: Apache-2.0
#include "core/json_text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace postrider {
namespace {

std::string fault(std::string_view text) {
  return json_fault(text, EventLimits::json_depth).value_or("none");
}

TEST(JsonText, TakesEveryKindOfValue) {
  for (const std::string_view text :
       {"{}", "[]", "0", "-1.5e+10", "\"\"", "true", "false", "null", " [1, {\"a\" : [null]}]\n",
        "\"\\u00e4\\ud83d\\ude00\"", "\"\u00E4\U0001F600\"", "123456789012345678901234567890",
        "{\"a\":1,\"a\":2}", "\"\\u0000\""}) {
    EXPECT_EQ(fault(text), "none") << text;
  }
}

TEST(JsonText, SaysWhereAndWhat) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "at byte 0 (line 1, column 1): the text ends too early"},
      {"   ", "at byte 3 (line 1, column 4): the text ends too early"},
      {"{", "at byte 1 (line 1, column 2): the text ends too early"},
      {"[1,", "at byte 3 (line 1, column 4): the text ends too early"},
      {"\"abc", "at byte 4 (line 1, column 5): the text ends too early"},
      {"tru", "at byte 3 (line 1, column 4): the text ends too early"},
      {"{\"a\":}", "at byte 5 (line 1, column 6): unexpected '}'"},
      {"{a:1}", "at byte 1 (line 1, column 2): unexpected 'a'"},
      {"{'a':1}", "at byte 1 (line 1, column 2): unexpected '''"},
      {"[1,]", "at byte 3 (line 1, column 4): unexpected ']'"},
      {"[1 2]", "at byte 3 (line 1, column 4): unexpected '2'"},
      {"{\"a\":1,}", "at byte 7 (line 1, column 8): unexpected '}'"},
      {"{} {}", "at byte 3 (line 1, column 4): unexpected '{' after the end of the value"},
      {"01", "at byte 1 (line 1, column 2): unexpected '1' after the end of the value"},
      {"NaN", "at byte 0 (line 1, column 1): unexpected 'N'"},
      {"[\n  1,\n  x\n]", "at byte 9 (line 3, column 3): unexpected 'x'"},
      {"[\"\u00E4\u00E4\", \u20AC]", "at byte 9 (line 1, column 8): unexpected '\u20AC'"},
      {"[\"a\nb\"]", "at byte 3 (line 1, column 4): unexpected byte 0x0A"},
      {"[\"\x01\"]", "at byte 2 (line 1, column 3): unexpected byte 0x01"},
      {"\xEF\xBB\xBF{}", "at byte 0 (line 1, column 1): unexpected '\xEF\xBB\xBF'"},
      {"/* x */ 1", "at byte 0 (line 1, column 1): unexpected '/'"},
      {"\"\\x\"", "at byte 2 (line 1, column 3): unexpected 'x'"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(fault(text), expected) << text;
  EXPECT_EQ(fault(std::string_view("[\"a\0\"]", 6)), "at byte 3 (line 1, column 4): unexpected byte 0x00");
}

TEST(JsonText, RefusesWhatIsNotUtf8AndLoneSurrogates) {
  for (const std::string_view text : {"\"\xFF\"", "\"\xC3(\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"",
                                      "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\u12g4\""}) {
    EXPECT_NE(fault(text), "none") << ::testing::PrintToString(text);
  }
}

TEST(JsonText, TakesThe256thLevelAndNotThe257th) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(fault(nested(256)), "none");
  EXPECT_EQ(fault(nested(257)), "at byte 256 (line 1, column 257): nested deeper than 256 levels");
  EXPECT_NE(fault(std::string(1'000'000, '[')), "none");
  EXPECT_NE(fault([] {
              std::string text;
              for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
              return text;
            }()),
            "none");
}

std::vector<std::string> texts(std::string_view text) {
  std::vector<std::string> all;
  const std::string_view fault = each_json_text(text, [&](std::string_view one) { all.emplace_back(one); });
  if (!fault.empty()) return {"no: " + std::string(fault)};
  return all;
}

TEST(JsonText, TextsOfAnArray) {
  using List = std::vector<std::string>;
  EXPECT_EQ(texts("[]"), List{});
  EXPECT_EQ(texts(R"([""])"), List{""});
  EXPECT_EQ(texts(R"( [ "a=b" , "c" ] )"), (List{"a=b", "c"}));
  EXPECT_EQ(texts(R"(["a\\b\"\u00e4\ud83d\ude00","x\n"])"), (List{"a\\b\"\u00E4\U0001F600", "x\n"}));
  const std::string large(100'000, 'x');
  EXPECT_EQ(texts("[\"" + large + "\",\"\\t" + large + "\\t\"]"), (List{large, "\t" + large + "\t"}));
}

TEST(JsonText, WhatIsNoArrayOfTexts) {
  for (const std::string_view text :
       {"", "x", "\"a\"", "{}", "1", "null", "[\"a\"", "[\"a\"]]", "[\"a\",]", "[\"a"}) {
    EXPECT_EQ(texts(text), std::vector<std::string>{"no: they are not a JSON array"}) << text;
  }
  for (const std::string_view text : {"[1]", "[-1]", "[1.5]", "[true]", "[null]", "[[]]", "[[\"a\"]]", "[{}]",
                                      "[\"a\",18446744073709551615]"}) {
    EXPECT_EQ(texts(text), std::vector<std::string>{"no: one of them is not a text"}) << text;
  }
}

TEST(JsonText, NamesWhatATreeWouldNotKeep) {
  const auto loss = [](std::string_view text) { return json_loss(text, 32).value_or("none"); };
  EXPECT_EQ(loss(R"({"a":1,"a":2})"), "the member 'a' is given more than once");
  EXPECT_EQ(loss(R"([{"a":{"b":1,"c":2,"\u0062":3}}])"), "the member 'b' is given more than once");
  EXPECT_EQ(loss(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]})"), "none");
  EXPECT_EQ(loss(R"({"a":[1,-1e999]})"), "the number -1e999 is beyond what a double can have");
  EXPECT_EQ(loss("1" + std::string(400, '0')),
            "the number 1" + std::string(39, '0') + "\u2026 is beyond what a double can have");
  EXPECT_EQ(loss("[1e308,123456789012345678901234567890,0.1e-999,{}]"), "none");
}

RC_GTEST_PROP(JsonText, AnyTextsComeBackFromAnArray, ()) {
  const auto all = *rc::gen::container<std::vector<std::string>>(
      rc::gen::container<std::string>(rc::gen::inRange<char>(0x01, 0x7F)));
  std::string text = "[";
  for (const std::string& one : all) {
    const std::string object = encode_headers({{one, ""}});  // {"…":""}
    if (text.size() > 1) text += ',';
    text += object.substr(1, object.size() - 5);
  }
  RC_ASSERT(texts(text + "]") == all);
}

RC_GTEST_PROP(JsonText, EveryPrefixOfAnObjectIsRefusedAtItsEnd, ()) {
  const std::string text = R"({"a":[1,-2.5e3,"x\n\u00e4",true,false,null],"b":{"c":{}}})";
  const auto size = *rc::gen::inRange<std::size_t>(0, text.size());
  const std::string expected = "at byte " + std::to_string(size) + " (line 1, column " +
                               std::to_string(size + 1) + "): the text ends too early";
  RC_ASSERT(fault(std::string_view(text).substr(0, size)) == expected);
}

RC_GTEST_PROP(JsonText, AnyBytesAreAnsweredWithAPositionInside, (const std::string& text)) {
  const std::string answer = fault(text);
  if (answer == "none") return;
  RC_ASSERT(answer.rfind("at byte ", 0) == 0U);
  RC_ASSERT(std::stoul(answer.substr(8)) <= text.size());
}

}  // namespace
}  // namespace postrider
