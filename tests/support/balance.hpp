// SPDX-License-Identifier: Apache-2.0
// The books of a crash test: what was published, what was delivered, by whom and when, and whether it adds
// up.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/outbox_admin.hpp"
#include "support/shop.hpp"

namespace postrider::test {

/// One line of the delivery log. Each is written with one write(2) to a file opened with O_APPEND: what a
/// listener has logged survives the death of its process, and the order of the lines is the order of the
/// deliveries.
struct Note {
  enum class What : char {
    done = 'D',
    failed = 'F',
    later = 'L',
    dead = 'X',         ///< the listener refused it, or this was its last attempt
    rolled_back = 'R',  ///< published in a transaction that is about to be rolled back
  };
  What what = What::done;
  std::string id{};
  int generation = 0;  ///< which process
  std::string key{};
  std::int64_t number = 0;
  std::int64_t at = 0;  ///< microseconds since 1970

  friend bool operator==(const Note&, const Note&) = default;
};

[[nodiscard]] std::string to_line(const Note& note);
/// Throws std::invalid_argument for a line that `to_line` would not have written.
[[nodiscard]] Note parse_note(std::string_view line);
[[nodiscard]] std::vector<Note> read_notes(const std::string& path);

/// The delivery log, as its writers have it. Thread-safe.
class NoteFile {
 public:
  NoteFile(const std::string& path, int generation);
  ~NoteFile();
  NoteFile(const NoteFile&) = delete;
  NoteFile& operator=(const NoteFile&) = delete;

  void write(Note::What what, const Order& order) const;

 private:
  int fd_;
  int generation_;
};

/// How a row ended.
struct RowEnd {
  EventStatus status = EventStatus::fresh;
  std::int64_t at = 0;  ///< microseconds since 1970; 0 when it has not ended
};

struct Facts {
  std::vector<Order> orders{};  ///< committed
  std::vector<Note> notes{};    ///< in order
  std::map<std::string, RowEnd> rows{};
  OutboxCounts counts{};
  std::set<int> killed{};  ///< generations that did not end by themselves
  /// How many events one process can hold: in its queues, at its workers, on their way to the database.
  std::size_t held_at_most = 0;
  /// False where the process lives on while its database dies: then every delivery may be one in flight.
  bool duplicates_only_after_kills = true;
};

struct Balance {
  std::size_t published = 0;
  std::size_t rolled_back = 0;
  std::size_t done = 0;
  std::size_t dead = 0;
  std::size_t pending = 0;
  std::size_t deliveries = 0;
  std::size_t failures = 0;
  std::size_t postponed = 0;
  std::size_t duplicates = 0;
  std::size_t most_duplicates_of_one_kill = 0;
  std::size_t keys = 0;
  std::vector<std::string> violations{};

  [[nodiscard]] std::string text() const;
};

/// Adds it all up. The violations, each in words:
/// - A: a committed order not delivered, or a row that is not where its fate leads;
/// - B: something delivered that was rolled back, or that nobody committed;
/// - C: a second delivery that no kill explains, after DONE, or more of them than a process can hold;
/// - D: a key out of order;
/// - H: published is not done + dead, or something is pending.
[[nodiscard]] Balance add_up(const Facts& facts);

/// The rows and counts of the facts, from the database itself.
void look_up(Storage& storage, Facts& facts);

}  // namespace postrider::test
