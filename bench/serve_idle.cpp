// SPDX-License-Identifier: Apache-2.0
#include "serve.hpp"

#if !defined(POSTRIDER_BENCH_PROGRAM)

namespace postrider::bench {
void serve_idle(Report& /*report*/, const std::string& line) {
  throw Unavailable(line + " needs the program");
}
void serve_start(Report& /*report*/, const std::string& line) {
  throw Unavailable(line + " needs the program");
}
void serve_size(Report& /*report*/, const std::string& line) {
  throw Unavailable(line + " needs the program");
}
}  // namespace postrider::bench

#else

#include <thread>

#include "serve_process.hpp"

namespace postrider::bench {

namespace {

constexpr auto settling = std::chrono::seconds{3};
constexpr auto observed = std::chrono::seconds{15};

}  // namespace

void serve_idle(Report& report, const std::string& line) {
  Sandbox sandbox(BackendKind::sqlite, "bench_serve");
  const ServeProcess serve(sandbox);
  std::this_thread::sleep_for(settling);
  const double before = serve.cpu_seconds();
  const Stopwatch watch;
  std::this_thread::sleep_for(observed);
  const double percent = (serve.cpu_seconds() - before) / watch.seconds() * 100;
  report.print({line + ".cpu",
                percent,
                "% of a core",
                "limit",
                1,
                Target::at_most(1.0),
                {{"seconds", watch.seconds()}}});
  report.print({line + ".memory", serve.resident_mb(), "MB", "limit", 60, Target::at_most(1.0), {}});
}

void serve_start(Report& report, const std::string& line) {
  constexpr int rounds = 9;
  Sandbox sandbox(BackendKind::sqlite, "bench_serve");
  std::vector<double> times;
  for (int round = 1; round <= rounds; ++round) {
    const ServeProcess serve(sandbox);
    times.push_back(serve.seconds_until_ready() * 1000);
    say(line + " round " + std::to_string(round) + ": " + std::to_string(times.back()) + " ms");
  }
  report.print({line,
                median(times),
                "ms",
                "limit",
                200,
                Target::at_most(1.0),
                {{"rounds", double{rounds}}, {"slowest", percentile(times, 1.0)}}});
}

void serve_size(Report& report, const std::string& line) {
  Sandbox sandbox(BackendKind::sqlite, "bench_serve");  // for a place to write to
  const std::filesystem::path stripped = sandbox.scratch_file("stripped");
  const std::string command =
      std::string("strip -o '") + stripped.string() + "' '" POSTRIDER_BENCH_PROGRAM_PATH "'";
  if (std::system(command.c_str()) != 0) throw Unavailable(line + " needs strip: apt install binutils");
  const double megabytes = static_cast<double>(std::filesystem::file_size(stripped)) / 1e6;
  std::filesystem::remove(stripped);
  report.print({line, megabytes, "MB", "limit", 25, Target::at_most(1.0), {}});
}

}  // namespace postrider::bench

#endif
