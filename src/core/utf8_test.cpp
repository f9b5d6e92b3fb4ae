// SPDX-License-Identifier: Apache-2.0
#include "core/utf8.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace postrider {
namespace {

std::string encode(char32_t c) {
  std::string out;
  const auto put = [&](unsigned value) { out += static_cast<char>(static_cast<unsigned char>(value)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6)), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12)), put(0x80 | ((c >> 6) & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18)), put(0x80 | ((c >> 12) & 0x3F)), put(0x80 | ((c >> 6) & 0x3F)),
        put(0x80 | (c & 0x3F));
  }
  return out;
}

rc::Gen<std::vector<char32_t>> characters() {
  const auto one =
      rc::gen::oneOf(rc::gen::inRange<char32_t>(0, 0x80), rc::gen::inRange<char32_t>(0x80, 0x800),
                     rc::gen::inRange<char32_t>(0x800, 0xD800), rc::gen::inRange<char32_t>(0xE000, 0x10000),
                     rc::gen::inRange<char32_t>(0x10000, 0x110000));
  return rc::gen::container<std::vector<char32_t>>(one);
}

rc::Gen<std::string> any_bytes() {
  // Bytes that matter for the decoder more often than others.
  const auto byte = rc::gen::oneOf(
      rc::gen::arbitrary<char>(),
      rc::gen::map(rc::gen::element(0x00, 0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xE0, 0xED,
                                    0xEF, 0xF0, 0xF4, 0xF5, 0xFF),
                   [](int value) { return static_cast<char>(static_cast<unsigned char>(value)); }));
  return rc::gen::container<std::string>(byte);
}

std::string join(const std::vector<char32_t>& chars, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += encode(chars[i]);
  return text;
}

TEST(Utf8, EveryCharacterOfUnicodeIsOneAndNoSurrogateIs) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    const bool surrogate = c >= 0xD800 && c < 0xE000;
    const auto length = utf8_length(encode(c));
    if (surrogate ? length.has_value() : length != 1U) FAIL() << std::hex << static_cast<unsigned>(c);
  }
  EXPECT_FALSE(utf8_length(encode(0x110000)).has_value());
}

TEST(Utf8, RefusesOverlongFormsLoneBytesAndBrokenEnds) {
  for (const std::string_view bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE2\x82",
        "\xF0\x9F\x98", "\xC3(", "\xE2\x82(", "a\xC3"}) {
    EXPECT_FALSE(utf8_length(bad).has_value()) << ::testing::PrintToString(bad);
  }
  EXPECT_EQ(utf8_length(""), 0U);
  EXPECT_EQ(utf8_length("z\u00E4\u20AC\U0001F600"), 4U);
}

TEST(Utf8, CountsAndFindsFaultsWhereverTheyStand) {
  for (std::size_t before = 0; before < 40; ++before) {
    for (std::size_t behind = 0; behind < 20; ++behind) {
      const std::string head(before, 'a');
      const std::string tail(behind, 'z');
      EXPECT_EQ(utf8_length(head + "\U0001F600" + tail), before + behind + 1);
      EXPECT_EQ(utf8_length(head + "\x80" + tail), std::nullopt) << before << " " << behind;
      EXPECT_EQ(utf8_length(head + tail), before + behind);
    }
    EXPECT_EQ(utf8_length(std::string(before, 'a') + "\xF0\x9F"), std::nullopt);
  }
}

RC_GTEST_PROP(Utf8, LengthCountsCharacters, ()) {
  const auto chars = *characters();
  RC_ASSERT(utf8_length(join(chars, chars.size())) == chars.size());
}

RC_GTEST_PROP(Utf8, CuttingNeverSplitsACharacter, ()) {
  const auto chars = *characters();
  const auto count = *rc::gen::inRange<std::size_t>(0, chars.size() + 2);
  const std::string text = join(chars, chars.size());
  RC_ASSERT(utf8_prefix(text, count) == join(chars, std::min(count, chars.size())));
}

RC_GTEST_PROP(Utf8, CuttingAnyBytesKeepsAPrefixOfAtMostThatManyCharacters, ()) {
  const std::string text = *any_bytes();
  const auto count = *rc::gen::inRange<std::size_t>(0, text.size() + 2);
  const std::string_view cut = utf8_prefix(text, count);
  RC_ASSERT(text.compare(0, cut.size(), cut) == 0);
  RC_ASSERT(*utf8_length(utf8_repaired(cut)) <= count);
  if (utf8_length(text)) RC_ASSERT(utf8_length(cut).has_value());
  if (cut.size() < text.size()) RC_ASSERT(*utf8_length(utf8_repaired(cut)) == count);
}

RC_GTEST_PROP(Utf8, RepairedTextIsValidWithoutNulAndGoodTextIsUntouched, ()) {
  const std::string text = *any_bytes();
  const std::string repaired = utf8_repaired(text);
  RC_ASSERT(utf8_length(repaired).has_value());
  RC_ASSERT(repaired.find('\0') == std::string::npos);
  RC_ASSERT(utf8_repaired(repaired) == repaired);
  if (utf8_length(text) && text.find('\0') == std::string::npos) RC_ASSERT(repaired == text);
}

TEST(Utf8, RepairReplacesEachOffendingByte) {
  EXPECT_EQ(utf8_repaired("a\xFF\xC3(b"), "a\uFFFD\uFFFD(b");
  EXPECT_EQ(utf8_repaired(std::string_view("a\0b", 3)), "a\uFFFDb");
  EXPECT_EQ(utf8_repaired("\xE2\x82"), "\uFFFD\uFFFD");
}

}  // namespace
}  // namespace postrider
