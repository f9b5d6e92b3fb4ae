// SPDX-License-Identifier: Apache-2.0
#include "storage/placeholders.hpp"

#include <gtest/gtest.h>

#include "postrider/error.hpp"

namespace postrider {
namespace {

struct Case {
  const char* from;
  const char* to;
};

TEST(NumberedPlaceholders, Table) {
  const Case cases[] = {
      {"", ""},
      {"select 1", "select 1"},
      {"?", "$1"},
      {"insert into t values (?, ?,?)", "insert into t values ($1, $2,$3)"},
      {"a = ? and b = $1", "a = ? and b = $1"},
      {"a ? 'k' and b = $2", "a ? 'k' and b = $2"},
      {"'?' || ?", "'?' || $1"},
      {"'it''s ?' || ?", "'it''s ?' || $1"},
      {"'back\\' || ?", "'back\\' || $1"},
      {"E'esc\\'?' || ?", "E'esc\\'?' || $1"},
      {"e'\\\\' || ?", "e'\\\\' || $1"},
      {"name'?' || ?", "name'?' || $1"},
      {"\"col?\" = ?", "\"col?\" = $1"},
      {"\"a\"\"?\" = ?", "\"a\"\"?\" = $1"},
      {"-- what?\n?", "-- what?\n$1"},
      {"? -- what?", "$1 -- what?"},
      {"/* ? /* ? */ ? */ ?", "/* ? /* ? */ ? */ $1"},
      {"$$ ? $$ || ?", "$$ ? $$ || $1"},
      {"$tag$ ? $$ ? $tag$ || ?", "$tag$ ? $$ ? $tag$ || $1"},
      {"'$1' || ?", "'$1' || $1"},
      {"-- $1\n?", "-- $1\n$1"},
      {"col$1 = ?", "col$1 = $1"},
      {"'open ?", "'open ?"},
      {"/* open ?", "/* open ?"},
      {"$x$ open ?", "$x$ open ?"},
      {"a - ? / ?", "a - $1 / $2"},
      {"? ? ? ? ? ? ? ? ? ?", "$1 $2 $3 $4 $5 $6 $7 $8 $9 $10"},
      {"'é?' || ?", "'é?' || $1"},
  };
  for (const Case& one : cases) EXPECT_EQ(numbered_placeholders(one.from).sql, one.to) << one.from;
}

TEST(NumberedPlaceholders, AreCounted) {
  struct Count {
    const char* sql;
    std::size_t placeholders;
  };
  for (const Count& one :
       {Count{"select 1", 0}, Count{"?, '?', ?", 2}, Count{"$1", 1}, Count{"$2 || $1 || $2", 2},
        Count{"a ? $3", 3}, Count{"'$9' || $1 -- $7", 1}, Count{"$$ $4 $$", 0}, Count{"$10 + $9", 10},
        Count{"col$5", 0}, Count{"$99999999999999999999999", 1'000'000}}) {
    EXPECT_EQ(numbered_placeholders(one.sql).placeholders, one.placeholders) << one.sql;
  }
}

TEST(NumberedPlaceholders, AWrongNumberOfValuesIsToldInWords) {
  try {
    numbered_placeholders("select ?, ?").check("select ?, ?", 1);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_STREQ(
        error.what(),
        "postrider: cannot run 'select ?, ?': it has 2 placeholders and was given 1 value. Hint: a question "
        "mark that is an operator needs $1, $2 … as placeholders");
  }
  EXPECT_THROW(numbered_placeholders("select $2").check("", 1), Error);
  EXPECT_THROW(numbered_placeholders("select 1").check("", 1), Error);
  numbered_placeholders("select $2").check("", 2);
}

}  // namespace
}  // namespace postrider
