// SPDX-License-Identifier: Apache-2.0
#include "support/crash_run.hpp"

#include <cstdlib>
#include <random>
#include <utility>

namespace postrider::test {

CrashRun::CrashRun(BackendKind kind, std::string program, std::string url)
    : database_(kind, std::move(url)), program_(std::move(program)) {}

std::unique_ptr<ChildProcess> CrashRun::start(const Options& options,
                                              const ChildProcess::Environment& environment) {
  std::vector<std::string> argv{program_, database_.url(), database_.schema(), notes_path(),
                                std::to_string(++generations_)};
  argv.insert(argv.end(), options.begin(), options.end());
  return std::make_unique<ChildProcess>(argv, environment);
}

std::string CrashRun::drain(const Options& options) {
  Options all{"drain=1"};
  all.insert(all.end(), options.begin(), options.end());
  const auto child = start(all);
  const auto report = child->read_until("report", std::chrono::seconds{120});
  if (!report) {
    was_killed(generations_);
    return child->at_end() ? "ended by itself: " + child->kill().text() : "is not done after two minutes";
  }
  const auto end = child->wait();
  if (!end || !end->ok())
    return "said '" + *report + "' and then ended with " + (end ? end->text() : "nothing");
  return *report;
}

Balance CrashRun::balance(std::size_t held_at_most) const {
  const auto storage = database_.open();
  Facts facts;
  facts.orders = Shop(*storage, database_.schema()).orders();
  facts.notes = notes();
  facts.killed = killed_;
  facts.held_at_most = held_at_most;
  look_up(*storage, facts);
  return add_up(facts);
}

unsigned chosen_seed() {
  const char* const text = std::getenv("POSTRIDER_SEED");
  return text == nullptr ? std::random_device{}() : static_cast<unsigned>(std::stoul(text));
}

int chosen_count(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoi(text);
}

}  // namespace postrider::test
