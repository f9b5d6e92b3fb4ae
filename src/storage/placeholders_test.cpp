// SPDX-License-Identifier: Apache-2.0
#include "storage/placeholders.hpp"

#include <gtest/gtest.h>

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
  for (const Case& one : cases) EXPECT_EQ(numbered_placeholders(one.from), one.to) << one.from;
}

}  // namespace
}  // namespace postrider
