// SPDX-License-Identifier: Apache-2.0
#include "postrider/tag.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "postrider/error.hpp"

namespace postrider {
namespace {

std::string refusal_of_tag(const std::string& text) {
  try {
    (void)Tag::decode(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "taken";
}

TEST(Tag, HazardS13OneWrittenFormThatSurvivesEverySpecialCharacter) {
  for (const Tag& tag :
       {Tag{"wallet_id", "42"}, Tag{"a", ""}, Tag{"a=b", "c"}, Tag{"a", "b=c"}, Tag{"a\\", "b"},
        Tag{"a", "b\\"}, Tag{"a\\=", "=\\"}, Tag{"key:", ":%"}, Tag{"a,b", "c,d"}, Tag{"\"'", "'\""},
        Tag{"größe", "ÆØÅ 漢字 🚂"}, Tag{" ", "\n\t"}}) {
    EXPECT_EQ(Tag::decode(tag.encode()), tag) << tag.encode();
  }
  EXPECT_EQ((Tag{"wallet_id", "42"}.encode()), "wallet_id=42");
  EXPECT_EQ((Tag{"a=b", "c=d"}.encode()), "a\\=b=c=d");
}

RC_GTEST_PROP(TagProperty, HazardS13DifferentTagsHaveDifferentTexts, ()) {
  const auto text = rc::gen::container<std::string>(rc::gen::element('a', '=', '\\', ',', '"'));
  const Tag one{*rc::gen::suchThat(text, [](const auto& key) { return !key.empty() && key.size() < 60; }),
                *text};
  const Tag two{*rc::gen::suchThat(text, [](const auto& key) { return !key.empty() && key.size() < 60; }),
                *text};
  RC_PRE(one.value.size() < 200U);
  RC_ASSERT(Tag::decode(one.encode()) == one);
  RC_ASSERT((one == two) == (one.encode() == two.encode()));
}

TEST(Tag, RefusesWhatIsNoTag) {
  EXPECT_NE(refusal_of_tag("wallet:42").find("it has no ="), std::string::npos);
  EXPECT_NE(refusal_of_tag("").find("it has no ="), std::string::npos);
  EXPECT_NE(refusal_of_tag("=42").find("key is empty"), std::string::npos);
  EXPECT_NE(refusal_of_tag("a\\b=1").find("escapes nothing"), std::string::npos);
  EXPECT_NE(refusal_of_tag("a\\").find("escapes nothing"), std::string::npos);
  EXPECT_NE(refusal_of_tag("a=\xff").find("UTF-8"), std::string::npos);
  EXPECT_NE(refusal_of_tag(std::string("a=\0", 3)).find("NUL"), std::string::npos);
}

TEST(Tag, BoundsCountCharactersAndAreExact) {
  std::string key;
  for (std::size_t i = 0; i < Tag::max_key_chars; ++i) key += "ä";
  EXPECT_EQ(refusal_of_tag(key + "=1"), "taken");
  EXPECT_NE(refusal_of_tag(key + "x=1").find("at most 64"), std::string::npos);
  const std::string value(Tag::max_value_chars, 'v');
  EXPECT_EQ(refusal_of_tag("k=" + value), "taken");
  EXPECT_NE(refusal_of_tag("k=" + value + "v").find("at most 256"), std::string::npos);
}

}  // namespace
}  // namespace postrider
