// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>

namespace postrider::bench {

namespace {

/// Three decimals at most, no exponent.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[64];
  std::snprintf(text, sizeof text, "%.3f", value);
  std::string out = text;
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out + '"';
}

std::string extra_value(const std::variant<double, bool, std::string>& value) {
  if (const auto* d = std::get_if<double>(&value)) return number(*d);
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  return quoted(std::get<std::string>(value));
}

}  // namespace

bool Target::met(double measured) const {
  switch (kind) {
    case Kind::at_least:
      return measured >= ratio;
    case Kind::at_most:
      return measured <= ratio;
    case Kind::none:
      return true;
  }
  return true;
}

std::string to_json(const Line& line) {
  const double ratio = line.value / line.baseline_value;
  std::string out = "{\"bench\":" + quoted(line.bench) + ",\"value\":" + number(line.value) +
                    ",\"unit\":" + quoted(line.unit) + ",\"baseline\":" + quoted(line.baseline) +
                    ",\"baseline_value\":" + number(line.baseline_value) + ",\"ratio\":" + number(ratio);
  if (line.target.kind != Target::Kind::none) {
    const char* sign = line.target.kind == Target::Kind::at_least ? ">=" : "<=";
    out += ",\"target\":" + quoted(sign + number(line.target.ratio));
    out += std::string(",\"met\":") + (line.target.met(ratio) ? "true" : "false");
  }
  for (const auto& [name, value] : line.extra) out += "," + quoted(name) + ":" + extra_value(value);
  return out + "}";
}

void Report::print(const Line& line) const {
  if (!wanted(line.bench)) return;
  std::cout << to_json(line) << std::endl;  // flushed: a run takes minutes, and somebody may be watching
  if (!line.target.met(line.value / line.baseline_value)) say(line.bench + ": MISSED its target");
}

double median(std::vector<double> values) {
  if (values.empty()) throw std::logic_error("median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double percentile(std::vector<double> values, double part) {
  if (values.empty()) throw std::logic_error("percentile of nothing");
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
}

Medians interleave(std::string_view bench, int rounds, const std::function<double()>& ours,
                   const std::function<double()>& bare) {
  std::vector<double> our_values;
  std::vector<double> bare_values;
  for (int round = 1; round <= rounds; ++round) {
    our_values.push_back(ours());
    bare_values.push_back(bare());
    say(std::string(bench) + " round " + std::to_string(round) + ": " + number(our_values.back()) +
        " against " + number(bare_values.back()));
  }
  const auto [smallest, largest] = std::minmax_element(our_values.begin(), our_values.end());
  const double ours_median = median(our_values);
  return {ours_median, median(bare_values), (*largest - *smallest) / ours_median};
}

std::string payload_200(std::size_t number) {
  char head[64];
  std::snprintf(head, sizeof head, "{\"order\":%012zu,\"text\":\"",
                number % 1'000'000'000'000U + 100'000'000'000U);
  std::string out = head;
  out.append(200 - out.size() - 2, 'x');
  return out + "\"}";
}

StolenTime::Times StolenTime::now() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  file >> cpu;
  Times times;
  constexpr int stolen = 7;  // user nice system idle iowait irq softirq steal
  for (int i = 0; i <= stolen; ++i) {
    double ticks = 0;
    if (!(file >> ticks)) break;
    times.all += ticks;
    if (i == stolen) times.stolen = ticks;
  }
  return times;
}

double StolenTime::percent() const {
  const Times end = now();
  const double all = end.all - begin_.all;
  return all <= 0 ? 0 : 100 * (end.stolen - begin_.stolen) / all;
}

double peak_resident_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024 / 1e6;
  }
  throw std::runtime_error("no VmHWM in /proc/self/status");
}

void reset_peak_resident() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

void say(const std::string& message) {
  std::cerr << message << std::endl;
}

std::string output_of_child(const std::vector<std::string>& arguments, const std::string& program) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::vector<char*> argv;
    std::vector<std::string> texts = arguments;
    for (std::string& text : texts) argv.push_back(text.data());
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  char buffer[256];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    output.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("a process that this one started has failed");
  return output;
}

}  // namespace postrider::bench
