// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "sandbox.hpp"

namespace postrider::bench {

/// `postrider serve` with relay, outbox, management API and dashboard on a sandbox's database. It is ready
/// when the constructor returns. Used by one thread.
class ServeProcess {
 public:
  explicit ServeProcess(const Sandbox& sandbox) : config_(sandbox.scratch_file("toml")) {
    std::ofstream(config_) << "[storage]\nurl = \"" << sandbox.url() << "\"\nschema = \"" << sandbox.schema()
                           << "\"\n[server]\nlisten = \"127.0.0.1:0\"\n[outbox]\nenabled = true\n"
                              "[relay.topics.all]\npublishers = [\"StatisticsPublisher\"]\n"
                              "polling-interval-ms = 20\n";
    const Stopwatch watch;
    start();
    await_ready();
    seconds_until_ready_ = watch.seconds();
  }
  ~ServeProcess() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
    ::close(output_);
    std::error_code ignored;
    std::filesystem::remove(config_, ignored);
  }
  ServeProcess(const ServeProcess&) = delete;
  ServeProcess& operator=(const ServeProcess&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] double seconds_until_ready() const noexcept { return seconds_until_ready_; }
  /// Of all its threads, in user and system mode.
  [[nodiscard]] double cpu_seconds() const {
    const std::string text = file("stat");
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    std::string skipped;
    for (int i = 3; i < 14; ++i) fields >> skipped;  // see proc(5): utime is the 14th
    double user = 0;
    double system = 0;
    fields >> user >> system;
    if (!fields) throw std::runtime_error("cannot read /proc/.../stat");
    return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  [[nodiscard]] double resident_mb() const {
    const std::string text = file("status");
    const std::size_t at = text.find("VmRSS:");
    if (at == std::string::npos) throw std::runtime_error("no VmRSS in /proc/.../status");
    return std::stod(text.substr(at + 6)) * 1024 / 1e6;
  }

 private:
  void start() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
    const char* const config = config_.c_str();
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      // Variables of the tests' servers would be taken for options.
      ::execl("/usr/bin/env", "env", "-i", POSTRIDER_BENCH_PROGRAM_PATH, "serve", "-c", config, nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ends[0];
  }
  void await_ready() {
    for (std::string line; read_line(line);) {
      const std::size_t at = line.find("http://127.0.0.1:");
      if (at != std::string::npos) std::from_chars(line.data() + at + 17, line.data() + line.size(), port_);
      if (line == "postrider: ready") return;
    }
    throw std::runtime_error("postrider serve has not become ready");
  }
  bool read_line(std::string& line) const {
    line.clear();
    for (char c = 0; ::read(output_, &c, 1) == 1;) {
      if (c == '\n') return true;
      line += c;
    }
    return false;
  }
  [[nodiscard]] std::string file(const char* name) const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path config_;
  pid_t pid_ = -1;
  int output_ = -1;
  std::uint16_t port_ = 0;
  double seconds_until_ready_ = 0;
};

}  // namespace postrider::bench
