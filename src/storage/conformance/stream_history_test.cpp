// SPDX-License-Identifier: Apache-2.0
// Random histories against a store that is a vector: appends with conditions of every shape, then reads of
// every shape. A failure prints the smallest history found and its seed (RC_PARAMS repeats it).
#include <rapidcheck.h>

#include <algorithm>
#include <iostream>

#include "storage/conformance/stream_fixture.hpp"

namespace postrider::conformance {
namespace {

/// What the store should be, the simplest way to say it.
class StreamModel {
 public:
  struct Row {
    std::string type;
    Tags tags;
  };

  [[nodiscard]] bool conflicts(const AppendCondition& condition) const {
    const auto after = static_cast<std::int64_t>(condition.after.value_or(Position{0}));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto position = static_cast<std::int64_t>(i) + 1;
      if (position > after && matches(condition.query, rows[i])) return true;
    }
    return false;
  }
  [[nodiscard]] Positions read(const ReadRequest& request) const {
    Positions found;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto position = static_cast<std::int64_t>(i) + 1;
      if (Position{position} > request.after && Position{position} <= request.until &&
          matches(*request.query, rows[i])) {
        found.push_back(position);
      }
    }
    if (request.backwards) std::reverse(found.begin(), found.end());
    if (found.size() > request.limit) found.resize(request.limit);
    return found;
  }

  std::vector<Row> rows;

 private:
  /// Written anew on purpose: the predicate is under test, too.
  static bool matches(const Query& query, const Row& row) {
    if (query.items().empty()) return true;
    for (const QueryItem& item : query.items()) {
      bool type = item.types.empty();
      for (const std::string& one : item.types) type = type || one == row.type;
      bool tags = true;
      for (const Tag& tag : item.tags) {
        bool has = false;
        for (const Tag& one : row.tags) has = has || (one.key == tag.key && one.value == tag.value);
        tags = tags && has;
      }
      if (type && tags) return true;
    }
    return false;
  }
};

/// Numbers from which everything is made, so that any shrinking gives a valid step.
struct StreamStep {
  unsigned what;
  unsigned a;
  unsigned b;
  unsigned c;
};
std::ostream& operator<<(std::ostream& out, const StreamStep& step) {
  return out << (step.what < 4 ? "append" : "read") << "(" << step.what << ", " << step.a << ", " << step.b
             << ", " << step.c << ")";
}
rc::Gen<StreamStep> any_stream_step() {
  const auto number = [] { return rc::gen::inRange(0U, 1U << 16U); };
  return rc::gen::build<StreamStep>(
      rc::gen::set(&StreamStep::what, rc::gen::inRange(0U, 8U)), rc::gen::set(&StreamStep::a, number()),
      rc::gen::set(&StreamStep::b, number()), rc::gen::set(&StreamStep::c, number()));
}

std::string some_type(unsigned n) {
  return std::string(1, static_cast<char>('A' + n % 3));
}
/// A subset of four tags.
Tags some_tags(unsigned n) {
  const Tags all{{"x", "1"}, {"x", "2"}, {"y", "1"}, {"z", ""}};
  Tags tags;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((n >> i & 1U) != 0) tags.push_back(all[i]);
  }
  return tags;
}
Query some_query(unsigned n) {
  std::vector<QueryItem> items;
  for (unsigned i = 0; i < 1 + n % 3; ++i) {
    const unsigned m = n / 3 + i * 7919;
    QueryItem item;
    for (unsigned t = 0; t < 3; ++t) {
      if ((m >> t & 1U) != 0 && (m >> 3U & 1U) != 0) item.types.push_back(some_type(t));
    }
    item.tags = some_tags((m >> 4U) & (m >> 8U));
    items.push_back(std::move(item));
  }
  return Query::of(std::move(items));
}

class StreamHistory : public StreamConformance {
 protected:
  void check(StreamStore& stream) {
    const bool held = rc::check("any history of appends and reads", [&] {
      sql("delete from " + table("event_tags"));
      sql("delete from " + table("events"));
      model_ = {};
      // A server writes to the disk after each append: shorter ones there, or it would take minutes.
      const double length = storage().kind() == BackendKind::sqlite ? 2.0 : 0.6;
      const auto history =
          *rc::gen::scale(length, rc::gen::container<std::vector<StreamStep>>(any_stream_step()));
      for (const StreamStep& step : history)
        step.what < 4 ? append_some(stream, step) : read_some(stream, step);
      const Query all = Query::all();
      const ReadPage page = stream.read({.query = &all});
      RC_ASSERT(page.events.size() == model_.rows.size());
      for (std::size_t i = 0; i < model_.rows.size(); ++i) {
        RC_ASSERT(page.events[i].type() == model_.rows[i].type);
        RC_ASSERT(page.events[i].tags() == model_.rows[i].tags);
      }
    });
    EXPECT_TRUE(held);
  }

 private:
  [[nodiscard]] std::optional<Position> some_after(unsigned n) const {
    const auto last = static_cast<std::int64_t>(model_.rows.size());
    switch (n % 5) {
      case 0:
        return std::nullopt;
      case 1:
        return Position{0};
      case 2:
        return Position{last};
      case 3:
        return Position{last + 1 + n % 3};
      default:
        return Position{last == 0 ? 0 : n / 5 % last};
    }
  }

  /// One to three requests in one call.
  void append_some(StreamStore& stream, const StreamStep& step) {
    const std::size_t count = 1 + step.what % 3;
    std::vector<std::vector<AppendEvent>> events(count);
    std::vector<std::optional<AppendCondition>> conditions(count);
    std::vector<AppendRequest> requests(count);
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned n = step.a + static_cast<unsigned>(i) * 31;
      for (unsigned k = 0; k < 1 + n % 2; ++k) {
        events[i].push_back(AppendEvent::builder(some_type(n + k)).tags(some_tags(n / 2 + k * 5)));
      }
      if (step.b % 4 != 0) {
        conditions[i] = AppendCondition{.query = some_query(step.b / 4 + static_cast<unsigned>(i) * 101),
                                        .after = some_after(step.c + static_cast<unsigned>(i))};
      }
      requests[i] = {.events = events[i], .condition = conditions[i] ? &*conditions[i] : nullptr};
    }
    const std::vector<AppendVerdict> verdicts = stream.append(requests);
    RC_ASSERT(verdicts.size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto last = Position{static_cast<std::int64_t>(model_.rows.size())};
      const bool beyond = conditions[i].has_value() && conditions[i]->after > last;
      RC_ASSERT(std::holds_alternative<std::exception_ptr>(verdicts[i]) == beyond);
      if (beyond) continue;
      const bool expected = conditions[i].has_value() && model_.conflicts(*conditions[i]);
      RC_ASSERT(std::holds_alternative<Conflict>(verdicts[i]) == expected);
      if (expected) {
        // Whatever it names is a conflict indeed.
        const auto& conflict = std::get<Conflict>(verdicts[i]);
        const StreamModel::Row& row = model_.rows.at(static_cast<std::size_t>(conflict.position) - 1);
        RC_ASSERT(conflict.type == row.type);
        RC_ASSERT(conditions[i]->query.matches(row.type, row.tags));
        RC_ASSERT(conflict.position > conditions[i]->after.value_or(Position{0}));
        continue;
      }
      const auto& appended = std::get<Appended>(verdicts[i]);
      RC_ASSERT(static_cast<std::size_t>(appended.first) == model_.rows.size() + 1);
      for (const AppendEvent& event : events[i]) model_.rows.push_back({event.event().type(), event.tags()});
      RC_ASSERT(static_cast<std::size_t>(appended.last) == model_.rows.size());
    }
  }

  void read_some(StreamStore& stream, const StreamStep& step) {
    const Query query = some_query(step.a);
    ReadRequest request{.query = &query,
                        .after = some_after(step.b).value_or(Position{0}),
                        .limit = 1 + step.c % 7,
                        .backwards = step.what % 2 == 0};
    if (step.c % 3 == 0) request.until = some_after(step.c).value_or(request.until);
    const ReadPage page = stream.read(request);
    RC_ASSERT(static_cast<std::size_t>(page.head) == model_.rows.size());
    const Positions expected = model_.read(request);
    Positions found = positions_of(page.events);
    // Where hashes collide, a page may have fewer and say so.
    for (ReadPage next = page; next.more && found.size() < expected.size();) {
      ReadRequest rest = request;
      rest.limit = request.limit - found.size();
      (request.backwards ? rest.until : rest.after) =
          Position{static_cast<std::int64_t>(next.seen) - (request.backwards ? 1 : 0)};
      next = stream.read(rest);
      for (const std::int64_t one : positions_of(next.events)) found.push_back(one);
    }
    RC_ASSERT(found == expected);
  }

  StreamModel model_;
};
POSTRIDER_FOR_EACH_BACKEND(StreamHistory);

TEST_P(StreamHistory, TheStoreIsWhatTheModelSays) {
  check(store());
}

TEST_P(StreamHistory, AndSoItIsWhenHashesCollide) {
  StorageOptions options = database().options();
  options.stream_hash = [](std::string_view text) -> std::uint64_t {
    return static_cast<unsigned char>(text.back()) % 3;
  };
  const std::unique_ptr<Storage> colliding = database().open_another(options);
  check(colliding->stream_store());
}

}  // namespace
}  // namespace postrider::conformance
