// SPDX-License-Identifier: Apache-2.0
#include "support/balance.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <unordered_map>

namespace postrider::test {
namespace {

/// SQLite's clock counts milliseconds, and both sides round.
constexpr std::int64_t clock_grain = 2'000;

constexpr std::string_view letters = "DFLXR";

/// What one event went through: positions in the notes.
struct History {
  const Order* order = nullptr;
  std::vector<const Note*> notes{};
  std::optional<std::size_t> first_end{};  // when it was first done or dead
  bool rolled_back = false;
};

using Histories = std::map<std::string, History>;

bool is_end(Note::What what) {
  return what == Note::What::done || what == Note::What::dead;
}

std::string about(const Note& note) {
  return note.id + " (key '" + note.key + "', number " + std::to_string(note.number) + ")";
}

Histories gather(const Facts& facts, Balance& balance) {
  Histories all;
  for (const Order& order : facts.orders) all[order.id.str()].order = &order;
  for (std::size_t i = 0; i < facts.notes.size(); ++i) {
    const Note& note = facts.notes[i];
    History& history = all[note.id];
    switch (note.what) {
      case Note::What::rolled_back:
        history.rolled_back = true;
        ++balance.rolled_back;
        continue;
      case Note::What::done:
        ++balance.deliveries;
        break;
      case Note::What::failed:
      case Note::What::dead:
        ++balance.failures;
        break;
      case Note::What::later:
        ++balance.postponed;
        break;
    }
    history.notes.push_back(&note);
    if (is_end(note.what) && !history.first_end) history.first_end = i;
  }
  return all;
}

void check_delivered(const Facts& facts, const Histories& all, Balance& balance) {
  auto& violations = balance.violations;
  for (const auto& [id, history] : all) {
    if (history.order == nullptr) {
      if (!history.notes.empty()) {
        violations.push_back(std::string("B: delivered ") + about(*history.notes.front()) +
                             (history.rolled_back ? ", which was rolled back" : ", which nobody committed"));
      }
      continue;
    }
    if (history.rolled_back) violations.push_back("B: " + id + " was rolled back and is committed");
    const bool dies = ends_dead(history.order->fate);
    if (!history.first_end) violations.push_back("A: committed, never delivered: " + id);
    for (const Note* note : history.notes) {
      if (is_end(note->what) && (note->what == Note::What::dead) != dies) {
        violations.push_back("A: against its fate " + std::string(to_string(history.order->fate)) + ": " +
                             about(*note));
      }
    }
    const auto row = facts.rows.find(id);
    const EventStatus wanted = dies ? EventStatus::dead : EventStatus::done;
    if (row == facts.rows.end()) {
      violations.push_back("A: the order is committed and its event is not: " + id);
    } else if (row->second.status != wanted) {
      violations.push_back("A: row " + id + " is " + std::string(to_string(row->second.status)) + ", not " +
                           std::string(to_string(wanted)));
    }
  }
}

void check_duplicates(const Facts& facts, const Histories& all, Balance& balance) {
  std::map<int, std::set<std::string>> repeated;  // per generation: its deliveries that came again
  for (const auto& [id, history] : all) {
    const Note* end = nullptr;
    for (const Note* note : history.notes) {
      if (end != nullptr) {
        if (is_end(note->what)) ++balance.duplicates;
        repeated[end->generation].insert(id);
        if (facts.duplicates_only_after_kills &&
            (end->generation == note->generation || !facts.killed.contains(end->generation))) {
          balance.violations.push_back("C: delivered again by process " + std::to_string(note->generation) +
                                       " although process " + std::to_string(end->generation) +
                                       " had finished it and was not killed: " + about(*note));
        }
      }
      if (is_end(note->what)) end = note;
      const auto row = facts.rows.find(id);
      if (row != facts.rows.end() && row->second.at != 0 && note->at > row->second.at + clock_grain) {
        balance.violations.push_back("C: delivered " + std::to_string(note->at - row->second.at) +
                                     " us after its row had ended: " + about(*note));
      }
    }
  }
  for (const auto& [generation, ids] : repeated) {
    const std::size_t count = ids.size();
    balance.most_duplicates_of_one_kill = std::max(balance.most_duplicates_of_one_kill, count);
    if (facts.held_at_most > 0 && count > facts.held_at_most && facts.duplicates_only_after_kills) {
      balance.violations.push_back("C: " + std::to_string(count) + " deliveries of process " +
                                   std::to_string(generation) + " came again, it can hold " +
                                   std::to_string(facts.held_at_most));
    }
  }
}

void check_order(const Histories& all, Balance& balance) {
  struct End {
    std::int64_t number;
    std::size_t position;
    const std::string* id;
  };
  std::map<std::string, std::vector<End>> keys;
  for (const auto& [id, history] : all) {
    if (history.order == nullptr || history.order->key.empty() || !history.first_end) continue;
    keys[history.order->key].push_back({history.order->number, *history.first_end, &id});
  }
  balance.keys = keys.size();
  for (auto& [key, ends] : keys) {
    std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.number < b.number; });
    for (std::size_t i = 1; i < ends.size(); ++i) {
      if (ends[i].position < ends[i - 1].position) {
        balance.violations.push_back("D: key '" + key + "': number " + std::to_string(ends[i].number) + " (" +
                                     *ends[i].id + ") overtook number " + std::to_string(ends[i - 1].number) +
                                     " (" + *ends[i - 1].id + ")");
      }
    }
  }
}

}  // namespace

std::string to_line(const Note& note) {
  std::ostringstream line;
  line << static_cast<char>(note.what) << ' ' << note.id << ' ' << note.generation << ' '
       << (note.key.empty() ? "-" : note.key) << ' ' << note.number << ' ' << note.at << '\n';
  return line.str();
}

Note parse_note(std::string_view line) {
  std::istringstream in{std::string(line)};
  char what = 0;
  Note note;
  std::string rest;
  if (!(in >> what >> note.id >> note.generation >> note.key >> note.number >> note.at) || (in >> rest) ||
      letters.find(what) == std::string_view::npos) {
    throw std::invalid_argument("no line of a delivery log: " + std::string(line));
  }
  note.what = static_cast<Note::What>(what);
  if (note.key == "-") note.key.clear();
  return note;
}

std::vector<Note> read_notes(const std::string& path) {
  std::ifstream in(path);
  std::vector<Note> notes;
  for (std::string line; std::getline(in, line);) notes.push_back(parse_note(line));
  return notes;
}

NoteFile::NoteFile(const std::string& path, int generation)
    : fd_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)), generation_(generation) {
  if (fd_ < 0) throw std::runtime_error("cannot open " + path);
}

NoteFile::~NoteFile() {
  ::close(fd_);
}

void NoteFile::write(Note::What what, const Order& order) const {
  const auto now = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  const std::string line =
      to_line({what, order.id.str(), generation_, order.key, order.number, now.time_since_epoch().count()});
  if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::runtime_error("cannot write the delivery log");
  }
}

Balance add_up(const Facts& facts) {
  Balance balance;
  balance.published = facts.orders.size();
  balance.done = static_cast<std::size_t>(facts.counts.done);
  balance.dead = static_cast<std::size_t>(facts.counts.dead);
  balance.pending = static_cast<std::size_t>(facts.counts.pending);
  const Histories all = gather(facts, balance);
  check_delivered(facts, all, balance);
  check_duplicates(facts, all, balance);
  check_order(all, balance);
  if (balance.pending != 0)
    balance.violations.push_back("H: " + std::to_string(balance.pending) + " are pending");
  if (balance.published != balance.done + balance.dead) {
    balance.violations.push_back("H: published " + std::to_string(balance.published) + ", done and dead " +
                                 std::to_string(balance.done + balance.dead));
  }
  return balance;
}

std::string Balance::text() const {
  std::ostringstream out;
  out << "published " << published << " = done " << done << " + dead " << dead << " + pending " << pending
      << "; rolled back " << rolled_back << "; deliveries " << deliveries << ", of them duplicates "
      << duplicates << " (at most " << most_duplicates_of_one_kill << " after one kill); failed attempts "
      << failures << "; postponed " << postponed << "; ordered keys " << keys << "; violations "
      << violations.size();
  std::size_t shown = 0;
  for (const std::string& violation : violations) {
    if (++shown > 20) {
      out << "\n  ... and more";
      break;
    }
    out << "\n  " << violation;
  }
  return out.str();
}

void look_up(Storage& storage, Facts& facts) {
  OutboxAdmin admin(storage);
  facts.counts = admin.counts();
  for (const Order& order : facts.orders) {
    const auto record = admin.find(order.id);
    if (!record) continue;
    facts.rows[order.id.str()] = {record->status,
                                  record->done_at ? record->done_at->time_since_epoch().count() : 0};
  }
}

}  // namespace postrider::test
