// SPDX-License-Identifier: Apache-2.0
// The fourth chapter: the pet resort logs to an Event Log API that goes away and comes back, in six phases.
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/demo/actor.hpp"
#include "app/demo/resort.hpp"
#include "postrider/open.hpp"

namespace postrider::demo {

#if !defined(POSTRIDER_WITH_HTTP)

Result play_resort(Stage& stage) {
  const char* const closed = "left out: this build has no HTTP client";
  std::fprintf(stage.out(), "\nLogger: %s.\n", closed);
  return {.good = true, .story = closed};
}

#else

namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t rapid_bookings = 15;  // 75 events, as in the seed
constexpr auto patience = 15s;

/// The program `postrider eventlog`, always on the same port.
class ApiProcess {
 public:
  explicit ApiProcess(const Stage& stage) : program_(stage.program()), storage_(stage.place().url()) {}
  ~ApiProcess() {
    if (pid_ > 0) end(SIGKILL);
  }
  ApiProcess(const ApiProcess&) = delete;
  ApiProcess& operator=(const ApiProcess&) = delete;

  /// Returns its port once it listens; 0 when it does not.
  std::uint16_t start() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    const std::string listen = "127.0.0.1:" + std::to_string(port_);
    const char* const program = program_.c_str();
    pid_ = ::fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl(program, program, "eventlog", "--listen", listen.c_str(), "--storage", storage_.c_str(),
              nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    std::string line;
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
    if (output_ >= 0) ::close(output_);
    output_ = ends[0];  // stays open, or its last words would kill it
    const std::size_t at = line.find("127.0.0.1:");
    if (at == std::string::npos) return 0;
    std::from_chars(line.data() + at + 10, line.data() + line.size(), port_);
    return port_;
  }
  void end(int signal) {
    ::kill(pid_, signal);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    ::close(output_);
    output_ = -1;
  }

 private:
  const std::string program_;
  const std::string storage_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
  int output_ = -1;
};

/// One line of the summary: how things stood at the end of a phase.
struct Standing {
  const char* when;
  std::uint64_t logged, sent, spilled, replayed, on_disk, lost;
  bool circuit_open;
};

/// The live table: drawn over itself on a terminal, a line now and then elsewhere.
class Board {
 public:
  Board(Stage& stage, const ResortBoard& board) : stage_(stage), board_(board) {}

  void title(const char* text) {
    std::fprintf(stage_.out(), "%s\n%5s %7s %7s %7s %8s %8s %7s %5s %-7s  %s\n", text, "sec", "queued",
                 "sent", "spilled", "replayed", "in mem.", "on disk", "lost", "circuit", "what happens");
  }
  /// False when nobody looks any more.
  bool draw(const char* what, bool force = false) {
    const auto now = SteadyClock::now();
    if (!stage_.terminal() && !force && now < next_line_) return !stage_.left();
    next_line_ = now + 700ms;
    const auto number = [](const std::atomic<std::uint64_t>& value) {
      return static_cast<unsigned long long>(value.load());
    };
    std::fprintf(stage_.out(), "%s%5.1f %7llu %7llu %7llu %8llu %8llu %7llu %5llu %-7s  %s%s",
                 stage_.terminal() ? "\r" : "", std::chrono::duration<double>(now - begin_).count(), logged(),
                 number(board_.sent), number(board_.spilled), number(board_.replayed),
                 number(board_.in_memory), number(board_.on_disk), number(board_.lost),
                 board_.circuit_open ? "open" : "closed", what,
                 !stage_.terminal() ? "\n"
                 : force            ? "\033[K\n"
                                    : "\033[K");
    return !stage_.left();
  }
  /// Draws until it is so. False when that takes too long, or nobody looks any more.
  template <class Condition>
  bool until(const char* what, const Condition& condition) {
    const auto deadline = SteadyClock::now() + patience;
    while (!condition()) {
      if (!draw(what) || SteadyClock::now() > deadline || !stage_.pause(10ms)) return false;
    }
    return draw(what, true);
  }
  [[nodiscard]] Standing standing(const char* when) const {
    return {when,           logged(),    board_.sent,        board_.spilled, board_.replayed,
            board_.on_disk, board_.lost, board_.circuit_open};
  }

 private:
  [[nodiscard]] unsigned long long logged() const { return board_.made * ResortBoard::events_of_a_booking; }
  Stage& stage_;
  const ResortBoard& board_;
  const SteadyClock::time_point begin_ = SteadyClock::now();
  SteadyClock::time_point next_line_ = begin_;
};

struct Truth {
  std::uint64_t rows, keys, events, whole_bookings;
};
/// What the API's database has, whatever the counters say.
Truth read_truth(const Place& place) {
  const std::unique_ptr<Storage> storage = open(place.url());
  Transaction tx = storage->begin();
  const auto all = tx.execute(
      "select count(*), count(distinct idempotency_key), count(distinct correlation_id || process_name || "
      "step) from postrider_event_log_entries");
  const auto whole = tx.execute(
      "select count(*) from (select 1 from postrider_event_log_entries group by correlation_id having "
      "count(*) = ?)",
      static_cast<std::int64_t>(ResortBoard::events_of_a_booking));
  const auto number = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  return {number(all.integer(0, 0)), number(all.integer(0, 1)), number(all.integer(0, 2)),
          number(whole.integer(0, 0))};
}

void print(const Stage& stage, const std::vector<Standing>& table) {
  std::fprintf(stage.out(), "\nPhase 6: the summary\n  %-38s %6s %5s %7s %8s %7s %4s  %s\n", "at the end of",
               "queued", "sent", "spilled", "replayed", "on disk", "lost", "circuit");
  for (const Standing& line : table) {
    std::fprintf(stage.out(), "  %-38s %6llu %5llu %7llu %8llu %7llu %4llu  %s\n", line.when,
                 static_cast<unsigned long long>(line.logged), static_cast<unsigned long long>(line.sent),
                 static_cast<unsigned long long>(line.spilled),
                 static_cast<unsigned long long>(line.replayed),
                 static_cast<unsigned long long>(line.on_disk), static_cast<unsigned long long>(line.lost),
                 line.circuit_open ? "open" : "closed");
  }
}

/// The six phases. Returns what went wrong; empty when nothing did.
class Resort {
 public:
  explicit Resort(Stage& stage)
      : stage_(stage), board_(ResortBoard::map(stage.place())), live_(stage, board_), api_(stage) {}

  std::string run() {
    if (!set_up()) return "the API or the resort does not start";
    if (!normal_flow()) return "events were not delivered while all was well";
    if (!outage()) return "events of the outage did not reach the disk";
    if (!recovery()) return "events did not come back from the disk";
    if (!aggressive()) return "the aggressive settings did not do what they should";
    api_.end(SIGTERM);
    print(stage_, table_);
    return {};
  }

 private:
  bool set_up() {
    std::fprintf(stage_.out(), "Phase 1: setup\n");
    board_.port = api_.start();
    if (board_.port == 0) return false;
    std::fprintf(stage_.out(), "  Event Log API  127.0.0.1:%llu, on SQLite, a process\n",
                 static_cast<unsigned long long>(board_.port.load()));
    resort_.emplace(stage_, "resort");
    if (!await_life(1)) return false;
    std::fprintf(stage_.out(),
                 "  Pet Resort     a process; spills to %s/spillover, its ring survives kill -9\n\n",
                 stage_.place().folder.c_str());
    return true;
  }
  bool normal_flow() {
    live_.title("Phase 2: bookings, check-ins, room service and check-outs, and both are well");
    bool good = true;
    for (int i = 0; i < 4 && good; ++i) {
      board_.wanted += 6;
      good = live_.until("business as usual", [&] { return everything_sent(); });
    }
    note("normal flow");
    return good && board_.spilled == 0;
  }
  bool outage() {
    std::fprintf(stage_.out(), "\n");
    live_.title("Phase 3: the API is killed with kill -9, and 15 bookings come at once");
    api_.end(SIGKILL);
    const auto begin = SteadyClock::now();
    board_.wanted += rapid_bookings;
    if (!live_.until("retries, then the disk", [&] { return board_.spilled > 0; })) return false;
    patient_spill_ = SteadyClock::now() - begin;
    if (!live_.until("spilling", [&] { return everything_on_disk(); })) return false;
    note("the outage");
    resort_->end(SIGKILL);
    live_.draw("and the resort dies by kill -9, too", true);
    resort_.emplace(stage_, "resort");
    if (!await_life(2)) return false;
    note("the resort's second life");
    return live_.draw("it is back, has found its files, and nobody books", true) &&
           board_.on_disk == rapid_bookings * ResortBoard::events_of_a_booking;
  }
  bool recovery() {
    std::fprintf(stage_.out(), "\n");
    live_.title("Phase 4: the API is back; nobody books anything");
    if (api_.start() == 0) return false;
    const bool good = live_.until("replay without new traffic", [&] { return everything_sent(); });
    note("the recovery");
    return good && board_.replayed == rapid_bookings * ResortBoard::events_of_a_booking;
  }
  bool aggressive() {
    std::fprintf(stage_.out(), "\n");
    live_.title("Phase 5: another outage; queue-capacity 10, circuit-breaker-threshold 2, full-policy block");
    resort_->end(SIGTERM);
    board_.aggressive = true;
    resort_.emplace(stage_, "resort");
    if (!await_life(3)) return false;
    api_.end(SIGKILL);
    const auto begin = SteadyClock::now();
    board_.wanted += rapid_bookings;
    if (!live_.until("spilling at once", [&] { return board_.spilled > spilled_; })) return false;
    const std::chrono::duration<double, std::milli> quick = SteadyClock::now() - begin;
    const std::chrono::duration<double, std::milli> patient = patient_spill_;
    if (!live_.until("spilling", [&] { return everything_on_disk(); })) return false;
    note("the aggressive outage");
    if (api_.start() == 0) return false;
    if (!live_.until("replay", [&] { return everything_sent(); })) return false;
    note("everything");
    resort_->end(SIGTERM);
    std::fprintf(
        stage_.out(),
        "  the first event was on disk after %.0f ms; in the outage before, with queue and circuit as usual "
        "here, after %.0f ms\n",
        quick.count(), patient.count());
    return true;
  }

  bool await_life(std::uint64_t number) {
    return stage_.await([&] { return board_.lives >= number || resort_->ended(); }, patience) &&
           board_.lives >= number;
  }
  [[nodiscard]] bool all_made() const { return board_.made == board_.wanted; }
  [[nodiscard]] bool everything_sent() const {
    return all_made() && board_.sent == board_.made * ResortBoard::events_of_a_booking &&
           !board_.circuit_open;
  }
  [[nodiscard]] bool everything_on_disk() const {
    return all_made() && board_.sent + board_.on_disk == board_.made * ResortBoard::events_of_a_booking;
  }
  void note(const char* when) {
    table_.push_back(live_.standing(when));
    spilled_ = board_.spilled;
  }

  Stage& stage_;
  ResortBoard& board_;
  Board live_;
  ApiProcess api_;
  std::optional<Actor> resort_;
  std::vector<Standing> table_;
  std::uint64_t spilled_ = 0;
  SteadyClock::duration patient_spill_{};
};

}  // namespace

Result play_resort(Stage& stage) {
  std::fprintf(
      stage.out(),
      "\nLogger: a pet resort logs five business events for each booking to an Event Log API, which\n"
      "goes away and comes back. (Circuit and replay wait 1.0 s and 0.3 s here; 30 s and 10 s are the\n"
      "defaults.)\n\n");
  const std::string fault = Resort(stage).run();
  if (stage.left()) return {};
  if (!fault.empty()) return {.story = fault};
  const Truth truth = read_truth(stage.place());
  const ResortBoard& board = ResortBoard::map(stage.place());
  const std::uint64_t logged = board.made * ResortBoard::events_of_a_booking;
  const bool good = truth.rows == logged && truth.keys == logged && truth.events == logged &&
                    truth.whole_bookings == board.made && board.lost == 0;
  return {.good = good,
          .story = std::to_string(logged) + " events logged, " + std::to_string(truth.rows) +
                   " in the API's table, each once; " + std::to_string(board.spilled) + " by way of the disk",
          .figures = {{"logged", logged},
                      {"stored", truth.rows},
                      {"keys", truth.keys},
                      {"spilled", board.spilled.load()},
                      {"replayed", board.replayed.load()},
                      {"lost", board.lost.load()}}};
}

#endif

}  // namespace postrider::demo
