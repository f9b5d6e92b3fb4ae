// SPDX-License-Identifier: Apache-2.0
#include "app/cli/change.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <utility>

namespace postrider::cli {
namespace {

/// For the step that is under way when somebody wants the end.
constexpr Duration audit_patience = std::chrono::seconds{3};
/// Ends the watching thread.
constexpr int leave = SIGUSR1;

/// One that is ignored (nohup) stays so.
bool ends_us(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN;
}

[[noreturn]] void die_of(int signal) {
  std::signal(signal, SIG_DFL);  // NOLINT(cert-err33-c): there is nothing it could fail of
  sigset_t one{};
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(signal);
  std::_Exit(128 + signal);
}

}  // namespace

void Change::begin() {
  const MutexLock lock(mutex_);
  begun_ = true;
}

bool Change::go_on(std::int64_t events) {
  const MutexLock lock(mutex_);
  reached_.events = events;
  reached_.ended_early = wanted_to_end_;
  return !wanted_to_end_;
}

void Change::done(std::int64_t events) {
  const MutexLock lock(mutex_);
  reached_.events = events;
}

Change::Reached Change::reached() const {
  const MutexLock lock(mutex_);
  return reached_;
}

bool Change::interrupt() {
  const MutexLock lock(mutex_);
  wanted_to_end_ = true;
  return begun_;
}

bool Change::finish() {
  const MutexLock lock(mutex_);
  if (given_up_) return false;
  finished_ = true;
  changed_.notify_all();
  return true;
}

bool Change::await_finish(Duration longest) {
  const SteadyPoint deadline = Clock::system().steady_now() + longest;
  const MutexLock lock(mutex_);
  while (!finished_ && changed_.wait_until(mutex_, deadline)) {
  }
  given_up_ = !finished_;
  return finished_;
}

InterruptWatch::InterruptWatch(Change& change, std::function<void()> give_up)
    : change_(change), give_up_(std::move(give_up)) {
  sigemptyset(&signals_);
  sigaddset(&signals_, leave);
  for (const int one : {SIGINT, SIGTERM, SIGHUP}) {
    if (ends_us(one)) sigaddset(&signals_, one);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  thread_ = std::thread([this] { watch(); });
}

InterruptWatch::~InterruptWatch() {
  if (thread_.joinable()) finish();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void InterruptWatch::watch() {
  int signal = 0;
  if (sigwait(&signals_, &signal) != 0 || signal == leave) return;
  signal_ = signal;
  if (!change_.interrupt()) die_of(signal);
  std::cerr << "postrider: ends after the step that is under way; once more ends it at once\n";
  sigset_t again = signals_;
  sigdelset(&again, leave);
  pthread_sigmask(SIG_UNBLOCK, &again, nullptr);
  if (change_.await_finish(audit_patience)) return;
  give_up_();
  die_of(signal);
}

void InterruptWatch::finish() {
  if (!thread_.joinable()) return;
  if (!change_.finish()) {
    for (;;) ::pause();  // until the watching thread has ended us
  }
  pthread_kill(thread_.native_handle(), leave);
  thread_.join();
}

void InterruptWatch::die() const {
  die_of(signal_);
}

}  // namespace postrider::cli
