// SPDX-License-Identifier: Apache-2.0
// The fourth chapter: the pet resort logs to an Event Log API that goes away and comes back, in six phases.
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <optional>
#include <postrider/postrider.hpp>
#include <string>
#include <thread>
#include <vector>

#include "node_process.hpp"
#include "resort.hpp"

namespace shop {

#if !defined(SHOP_WITH_RESORT)

int run_resort_chapter(const Place& /*place*/, const std::string& /*program*/) {
  std::printf("\nThe pet resort is closed: this build has no HTTP client or no program.\n");
  return 0;
}

#else

namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t rapid_bookings = 15;  // 75 events, as in the seed
constexpr auto patience = 15s;

std::string storage_url(const Place& place) {
  return "sqlite:" + (place.folder / "eventlog.db").string();
}

/// The program `postrider eventlog`, always on the same port.
class ApiProcess {
 public:
  explicit ApiProcess(const Place& place) : storage_(storage_url(place)) {}
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
    pid_ = ::fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl(SHOP_PROGRAM_PATH, SHOP_PROGRAM_PATH, "eventlog", "--listen", listen.c_str(), "--storage",
              storage_.c_str(), nullptr);
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
class Dashboard {
 public:
  explicit Dashboard(const ResortBoard& board) : board_(board) {}

  void title(const char* text) {
    std::printf("%s\n%5s %7s %7s %7s %8s %8s %7s %5s %-7s  %s\n", text, "sec", "queued", "sent", "spilled",
                "replayed", "in mem.", "on disk", "lost", "circuit", "what happens");
  }
  /// False when nobody looks any more.
  bool draw(const char* what, bool force = false) {
    const auto now = SteadyClock::now();
    if (!terminal_ && !force && now < next_line_) return !told_to_leave();
    next_line_ = now + 700ms;
    const auto number = [](const std::atomic<std::uint64_t>& value) {
      return static_cast<unsigned long long>(value.load());
    };
    std::printf("%s%5.1f %7llu %7llu %7llu %8llu %8llu %7llu %5llu %-7s  %s%s", terminal_ ? "\r" : "",
                std::chrono::duration<double>(now - begin_).count(), logged(), number(board_.sent),
                number(board_.spilled), number(board_.replayed), number(board_.in_memory),
                number(board_.on_disk), number(board_.lost), board_.circuit_open ? "open" : "closed", what,
                !terminal_ ? "\n"
                : force    ? "\033[K\n"
                           : "\033[K");
    return std::fflush(stdout) == 0 && !told_to_leave();
  }
  /// Draws until it is so. False when that takes too long, or nobody looks any more.
  template <class Condition>
  bool until(const char* what, const Condition& condition) {
    const auto deadline = SteadyClock::now() + patience;
    while (!condition()) {
      if (!draw(what) || SteadyClock::now() > deadline) return false;
      std::this_thread::sleep_for(10ms);
    }
    return draw(what, true);
  }
  [[nodiscard]] Standing standing(const char* when) const {
    return {when,           logged(),    board_.sent,        board_.spilled, board_.replayed,
            board_.on_disk, board_.lost, board_.circuit_open};
  }

 private:
  [[nodiscard]] unsigned long long logged() const { return board_.made * ResortBoard::events_of_a_booking; }
  const ResortBoard& board_;
  const bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
  const SteadyClock::time_point begin_ = SteadyClock::now();
  SteadyClock::time_point next_line_ = begin_;
};

struct Truth {
  std::uint64_t rows, keys, events, whole_bookings;
};
/// What the API's database has, whatever the counters say.
Truth read_truth(const Place& place) {
  const auto storage = postrider::open(storage_url(place));
  auto tx = storage->begin();
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

void print(const std::vector<Standing>& table) {
  std::printf("\nPhase 6: the summary\n  %-38s %6s %5s %7s %8s %7s %4s  %s\n", "at the end of", "queued",
              "sent", "spilled", "replayed", "on disk", "lost", "circuit");
  for (const Standing& line : table) {
    std::printf("  %-38s %6llu %5llu %7llu %8llu %7llu %4llu  %s\n", line.when,
                static_cast<unsigned long long>(line.logged), static_cast<unsigned long long>(line.sent),
                static_cast<unsigned long long>(line.spilled), static_cast<unsigned long long>(line.replayed),
                static_cast<unsigned long long>(line.on_disk), static_cast<unsigned long long>(line.lost),
                line.circuit_open ? "open" : "closed");
  }
}

/// The six phases. Returns what went wrong; empty when nothing did.
class Resort {
 public:
  Resort(const Place& place, const std::string& program)
      : place_(place), program_(program), board_(ResortBoard::map(place)), dashboard_(board_), api_(place) {}

  std::string run() {
    if (!set_up()) return "the API or the resort does not start";
    if (!normal_flow()) return "events were not delivered while all was well";
    if (!outage()) return "events of the outage did not reach the disk";
    if (!recovery()) return "events did not come back from the disk";
    if (!aggressive()) return "the aggressive settings did not do what they should";
    api_.end(SIGTERM);
    print(table_);
    return {};
  }

 private:
  bool set_up() {
    std::printf("Phase 1: setup\n");
    board_.port = api_.start();
    if (board_.port == 0) return false;
    std::printf("  Event Log API  127.0.0.1:%llu, on SQLite, a process\n",
                static_cast<unsigned long long>(board_.port.load()));
    resort_.emplace(program_, "--resort", place_);
    if (!await_life(1)) return false;
    std::printf("  Pet Resort     a process; spills to %s/spillover, its ring survives kill -9\n\n",
                place_.folder.c_str());
    return true;
  }
  bool normal_flow() {
    dashboard_.title("Phase 2: bookings, check-ins, room service and check-outs, and both are well");
    bool good = true;
    for (int i = 0; i < 4 && good; ++i) {
      board_.wanted += 6;
      good = dashboard_.until("business as usual", [&] { return everything_sent(); });
    }
    note("normal flow");
    return good && board_.spilled == 0;
  }
  bool outage() {
    std::printf("\n");
    dashboard_.title("Phase 3: the API is killed with kill -9, and 15 bookings come at once");
    api_.end(SIGKILL);
    const auto begin = SteadyClock::now();
    board_.wanted += rapid_bookings;
    if (!dashboard_.until("retries, then the disk", [&] { return board_.spilled > 0; })) return false;
    patient_spill_ = SteadyClock::now() - begin;
    if (!dashboard_.until("spilling", [&] { return everything_on_disk(); })) return false;
    note("the outage");
    resort_->end(SIGKILL);
    dashboard_.draw("and the resort dies by kill -9, too", true);
    resort_.emplace(program_, "--resort", place_);
    if (!await_life(2)) return false;
    note("the resort's second life");
    return dashboard_.draw("it is back, has found its files, and nobody books", true) &&
           board_.on_disk == rapid_bookings * ResortBoard::events_of_a_booking;
  }
  bool recovery() {
    std::printf("\n");
    dashboard_.title("Phase 4: the API is back; nobody books anything");
    if (api_.start() == 0) return false;
    const bool good = dashboard_.until("replay without new traffic", [&] { return everything_sent(); });
    note("the recovery");
    return good && board_.replayed == rapid_bookings * ResortBoard::events_of_a_booking;
  }
  bool aggressive() {
    std::printf("\n");
    dashboard_.title(
        "Phase 5: another outage; queue-capacity 10, circuit-breaker-threshold 2, full-policy block");
    resort_->end(SIGTERM);
    board_.aggressive = true;
    resort_.emplace(program_, "--resort", place_);
    if (!await_life(3)) return false;
    api_.end(SIGKILL);
    const auto begin = SteadyClock::now();
    board_.wanted += rapid_bookings;
    if (!dashboard_.until("spilling at once", [&] { return board_.spilled > spilled_; })) return false;
    const std::chrono::duration<double, std::milli> quick = SteadyClock::now() - begin;
    const std::chrono::duration<double, std::milli> patient = patient_spill_;
    if (!dashboard_.until("spilling", [&] { return everything_on_disk(); })) return false;
    note("the aggressive outage");
    if (api_.start() == 0) return false;
    if (!dashboard_.until("replay", [&] { return everything_sent(); })) return false;
    note("everything");
    resort_->end(SIGTERM);
    std::printf(
        "  the first event was on disk after %.0f ms; in the outage before, with queue and circuit as usual "
        "here, after %.0f ms\n",
        quick.count(), patient.count());
    return true;
  }

  bool await_life(std::uint64_t number) {
    const auto deadline = SteadyClock::now() + patience;
    while (board_.lives < number) {
      if (told_to_leave() || resort_->ended() || SteadyClock::now() > deadline) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
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
    table_.push_back(dashboard_.standing(when));
    spilled_ = board_.spilled;
  }

  const Place& place_;
  const std::string& program_;
  ResortBoard& board_;
  Dashboard dashboard_;
  ApiProcess api_;
  std::optional<NodeProcess> resort_;
  std::vector<Standing> table_;
  std::uint64_t spilled_ = 0;
  SteadyClock::duration patient_spill_{};
};

}  // namespace

int run_resort_chapter(const Place& place, const std::string& program) {
  std::printf(
      "\nA pet resort logs five business events for each booking to the Event Log API, which\n"
      "goes away and comes back. (Circuit and replay wait 1.0 s and 0.3 s here; 30 s and 10 s\n"
      "are the defaults.)\n\n");
  const std::string fault = Resort(place, program).run();
  if (told_to_leave()) return interrupted_code;
  if (!fault.empty()) {
    std::printf("\nNOT AS IT SHOULD BE: %s.\n\n", fault.c_str());
    return 1;
  }
  const Truth truth = read_truth(place);
  const ResortBoard& board = ResortBoard::map(place);
  const std::uint64_t logged = board.made * ResortBoard::events_of_a_booking;
  const bool good = truth.rows == logged && truth.keys == logged && truth.events == logged &&
                    truth.whole_bookings == board.made && board.lost == 0;
  std::printf("\nThe API's table has %llu events with %llu different keys, of %llu bookings.\n%s\n",
              static_cast<unsigned long long>(truth.rows), static_cast<unsigned long long>(truth.keys),
              static_cast<unsigned long long>(truth.whole_bookings),
              good ? "Each event that was logged is there, and each once." : "NOT AS IT SHOULD BE.");
  return good ? 0 : 1;
}

#endif

}  // namespace shop
