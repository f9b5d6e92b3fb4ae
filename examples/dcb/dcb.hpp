// SPDX-License-Identifier: Apache-2.0
// The examples of dcb.events as programs: each decides by what the events say, and by nothing else. They
// throw std::runtime_error when a rule forbids something.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <postrider/postrider.hpp>
#include <stdexcept>
#include <string>

namespace dcb {

using postrider::CommandOutcome;
using postrider::EventStore;

/// A rule that forbids what was asked for.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Students subscribe to courses: a course has places, a student has at most ten courses. Two boundaries in
/// one decision, and no aggregate that would lock either as a whole.
class Courses {
 public:
  static constexpr int courses_per_student = 10;
  explicit Courses(EventStore& store) : store_(store) {}
  void define(const std::string& course, int capacity);
  void change_capacity(const std::string& course, int capacity);
  void subscribe(const std::string& student, const std::string& course);

 private:
  EventStore& store_;
};

/// A name belongs to one account at a time. Whoever gives it up or changes it keeps it reserved for a while.
class Usernames {
 public:
  using Clock = std::function<postrider::TimePoint()>;
  static constexpr std::chrono::hours retention{72};
  Usernames(EventStore& store, Clock now) : store_(store), now_(std::move(now)) {}
  void register_account(const std::string& account, const std::string& username);
  void change(const std::string& account, const std::string& from, const std::string& to);
  void close(const std::string& account, const std::string& username);

 private:
  [[nodiscard]] postrider::Projected<bool> claimed(const std::string& username);
  EventStore& store_;
  Clock now_;
};

/// Invoice numbers without gaps, however many create them at the same time.
class Invoices {
 public:
  explicit Invoices(EventStore& store) : store_(store) {}
  /// The number.
  std::int64_t create(const std::string& data);

 private:
  EventStore& store_;
};

/// Sign-up with a one-time password: used once, within an hour, and right.
class OptIn {
 public:
  using Clock = std::function<postrider::TimePoint()>;
  static constexpr std::chrono::minutes valid{60};
  OptIn(EventStore& store, Clock now) : store_(store), now_(std::move(now)) {}
  void initiate(const std::string& mail, const std::string& token);
  void confirm(const std::string& mail, const std::string& token);

 private:
  EventStore& store_;
  Clock now_;
};

/// Orders at the price that was shown: the old price is good for a while after it was changed.
class Products {
 public:
  using Clock = std::function<postrider::TimePoint()>;
  static constexpr std::chrono::minutes grace{10};
  Products(EventStore& store, Clock now) : store_(store), now_(std::move(now)) {}
  void define(const std::string& product, std::int64_t price);
  void change_price(const std::string& product, std::int64_t price);
  /// Several products at once are one decision.
  void order(const std::map<std::string, std::int64_t>& displayed_prices);

 private:
  EventStore& store_;
  Clock now_;
};

/// The same order sent twice (a double click, a repeated request) is one order.
class Orders {
 public:
  explicit Orders(EventStore& store) : store_(store) {}
  CommandOutcome place(const std::string& order, const std::string& idempotency_token);

 private:
  EventStore& store_;
};

}  // namespace dcb
