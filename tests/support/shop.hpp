// SPDX-License-Identifier: Apache-2.0
// The business side of the crash tests: orders in a table of their own, written in the transaction that
// publishes their event. What is in that table afterwards was committed, whatever happened to the process
// that wrote it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/event.hpp"
#include "postrider/storage.hpp"

namespace postrider::test {

/// What is to become of an order's event.
enum class Fate {
  ok,        ///< delivered at the first attempt
  flaky,     ///< fails once, then succeeds
  later,     ///< asks for patience once, then succeeds
  dead,      ///< refused for good
  hopeless,  ///< fails at every attempt, dead after the last one
  waits,     ///< the listener waits in the middle until it is told to go on
};
[[nodiscard]] std::string_view to_string(Fate fate) noexcept;
[[nodiscard]] Fate fate_of(std::string_view text);
[[nodiscard]] constexpr bool ends_dead(Fate fate) noexcept {
  return fate == Fate::dead || fate == Fate::hopeless;
}

/// One order; its event has the same id.
struct Order {
  EventId id{};
  std::string key{};        ///< ordering key; empty: none
  std::int64_t number = 0;  ///< grows with every order of a key
  Fate fate = Fate::ok;
};

/// The event that tells of an order: everything about it is in the headers.
[[nodiscard]] EventBuilder event_of(const Order& order);
/// The order that an event tells of.
[[nodiscard]] Order order_of(const Event& event);

/// The tables `<schema>_shop_order` and `<schema>_shop_lane`.
class Shop {
 public:
  static constexpr int lanes = 8;

  Shop(Storage& storage, const std::string& schema);

  void create();
  void drop();
  /// Keeps other transactions of this lane, also those of a killed process that the server still works on,
  /// waiting until this one ends: so the numbers of a lane's keys are committed in their order.
  void enter_lane(Tx& tx, int lane) const;
  void insert(Tx& tx, const Order& order) const;
  [[nodiscard]] std::vector<Order> orders() const;

 private:
  /// One statement that makes or drops a table, in a transaction of its own.
  void define(const std::string& sql) const;

  Storage& storage_;
  std::string orders_;
  std::string lanes_;
};

/// A database of its own for one test: a file in a fresh folder, or a schema of the test server. Gone with
/// this object.
class CrashDatabase {
 public:
  /// True when this backend is built in and its server is there.
  [[nodiscard]] static bool available(BackendKind kind);

  /// For a server elsewhere than the environment says, give its URL. Makes the shop's tables; the outbox's
  /// own are left to whoever uses them.
  explicit CrashDatabase(BackendKind kind, std::string url = {});
  ~CrashDatabase();
  CrashDatabase(const CrashDatabase&) = delete;
  CrashDatabase& operator=(const CrashDatabase&) = delete;

  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  [[nodiscard]] const std::string& schema() const noexcept { return schema_; }
  /// For logs and the like; exists for every backend.
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  [[nodiscard]] BackendKind kind() const noexcept { return kind_; }
  /// Opened anew, so that nobody but the processes under test holds it open meanwhile.
  [[nodiscard]] std::unique_ptr<Storage> open() const;
  /// Leaves everything where it is, for whoever wants to look.
  void keep() noexcept { keep_ = true; }

 private:
  void drop() const;

  BackendKind kind_;
  std::string folder_;
  std::string url_;
  std::string schema_;
  bool keep_ = false;
};

/// Asks until nothing is pending. False when that takes too long.
[[nodiscard]] bool await_nothing_pending(Storage& storage,
                                         std::chrono::seconds timeout = std::chrono::seconds{60});

/// What parametrised tests run on: every backend that is built in.
[[nodiscard]] std::vector<BackendKind> crash_backends();

}  // namespace postrider::test
