// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "app/http/message.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::api {

/// The same question, asked by many at once, is put to the database once for all who wait. Nobody gets an
/// answer that was begun before he asked: who comes while one is being fetched, waits for the next. So a busy
/// question costs no more than its own time, however many ask it. Thread-safe.
class SharedReads {
 public:
  /// What `read` returns or throws, called here or by another one with the same key.
  [[nodiscard]] http::Response get(const std::string& key, const std::function<http::Response()>& read)
      POSTRIDER_EXCLUDES(mutex_);

 private:
  struct Flight {
    bool done = false;
    http::Response response{};
    std::exception_ptr error{};
  };
  struct Flights {
    std::shared_ptr<Flight> running{};
    std::shared_ptr<Flight> next{};  // of those who came later
  };

  void run(Flight& flight, const std::function<http::Response()>& read) POSTRIDER_EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Flights> flights_ POSTRIDER_GUARDED_BY(mutex_);  // only those that run
};

}  // namespace postrider::api
