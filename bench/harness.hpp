// SPDX-License-Identifier: Apache-2.0
// What every benchmark shares: rounds, medians, the JSON lines.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace postrider::bench {

using Seconds = std::chrono::duration<double>;

/// Rounds of each side. They alternate, so that whatever else the machine does meets both alike.
inline constexpr int default_rounds = 5;

/// A benchmark that cannot run here (a server or a component is missing). Reported, and the exit code says
/// so.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What `ratio` = value / baseline_value should be.
struct Target {
  enum class Kind { none, at_least, at_most };
  Kind kind = Kind::none;
  double ratio = 0;

  [[nodiscard]] static Target at_least(double ratio) { return {Kind::at_least, ratio}; }
  [[nodiscard]] static Target at_most(double ratio) { return {Kind::at_most, ratio}; }
  [[nodiscard]] bool met(double measured) const;
};

/// One line of output.
struct Line {
  using Extra = std::pair<std::string, std::variant<double, bool, std::string>>;
  std::string bench;
  double value = 0;
  std::string unit;
  std::string baseline;
  double baseline_value = 0;
  Target target{};
  std::vector<Extra> extra{};
};

[[nodiscard]] std::string to_json(const Line& line);

/// Prints the lines that were asked for.
class Report {
 public:
  explicit Report(std::set<std::string, std::less<>> wanted) : wanted_(std::move(wanted)) {}
  [[nodiscard]] bool wanted(std::string_view line) const { return wanted_.contains(line); }
  void print(const Line& line) const;

 private:
  std::set<std::string, std::less<>> wanted_;
};

/// One benchmark: the lines it prints, and how.
struct Bench {
  std::vector<std::string> lines;
  std::function<void(Report&)> run;
};

/// Middle value; of an even number the mean of the two middle ones.
[[nodiscard]] double median(std::vector<double> values);
/// Nearest rank; `part` in (0, 1].
[[nodiscard]] double percentile(std::vector<double> values, double part);

struct Medians {
  double ours = 0;
  double bare = 0;
  double spread = 0;  ///< (largest - smallest) / median of our rounds
};

/// Runs ours, bare, ours, bare … and tells of each round on stderr.
Medians interleave(std::string_view bench, int rounds, const std::function<double()>& ours,
                   const std::function<double()>& bare);

/// A JSON document of exactly 200 bytes.
[[nodiscard]] std::string payload_200(std::size_t number);

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return Seconds(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// How much of the processors others on the same host took meanwhile (steal of /proc/stat), in percent. A
/// virtual machine that is stopped for milliseconds again and again has no latencies to speak of.
class StolenTime {
 public:
  StolenTime() : begin_(now()) {}
  [[nodiscard]] double percent() const;

 private:
  struct Times {
    double all = 0;
    double stolen = 0;
  };
  [[nodiscard]] static Times now();
  Times begin_;
};

/// The largest resident set of this process since its start or the last reset, in MB (10^6 bytes).
[[nodiscard]] double peak_resident_mb();
void reset_peak_resident();

/// Runs a program (by default this one again) and returns what it printed. `arguments` begin with its name.
[[nodiscard]] std::string output_of_child(const std::vector<std::string>& arguments,
                                          const std::string& program = "/proc/self/exe");

/// A line for people, on stderr.
void say(const std::string& message);

}  // namespace postrider::bench
