// SPDX-License-Identifier: Apache-2.0
// What the outbox conformance tests share: short ways to say things.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/conformance/store_fixture.hpp"
#include "storage/outbox_store.hpp"

namespace postrider::conformance {

/// How `publish` makes a row; the default is free at once, without a key.
struct Row {
  std::string key{};
  std::string owner{};
  Duration lease{};
  std::optional<Duration> deliver_in{};
  std::string type = "Happened";
};

class OutboxConformance : public StoreConformance {
 protected:
  [[nodiscard]] OutboxStore& store() { return storage().outbox_store(); }
  [[nodiscard]] OutboxAdminStore& admin() { return storage().outbox_admin_store(); }
  [[nodiscard]] std::string table() const { return StoreConformance::table("outbox_event"); }

  void insert(Tx& tx, const Event& event, const Row& row = {}) {
    const NewOutboxRow one{.event = &event, .ordering_key = row.key, .lease = row.lease};
    store().insert(tx, row.owner, {&one, 1});
  }
  /// Commits one event with this id.
  void publish(const std::string& id, const Row& row = {}) {
    EventBuilder builder = Event::builder(row.type);
    builder.id(EventId(id)).json("{}");
    if (row.deliver_in.has_value()) builder.deliver_at(clock_.now() + *row.deliver_in);
    Transaction tx = storage().begin();
    insert(tx, builder.build(), row);
    tx.commit();
  }
  /// The same for an event of the aggregate "Order".
  void publish_order(const char* id, const char* type, const char* aggregate_id, const char* tenant) {
    EventBuilder builder = Event::builder(type);
    builder.id(EventId(id)).aggregate("Order", aggregate_id).tenant(tenant).json("{}");
    Transaction tx = storage().begin();
    insert(tx, builder.build());
    tx.commit();
  }
  void publish_all(const std::vector<std::string>& ids, const Row& row = {}) {
    for (const std::string& id : ids) publish(id, row);
  }

  std::vector<ClaimedEvent> claim_events(std::string_view owner, std::size_t limit = 100,
                                         Duration lease = 30s,
                                         const std::vector<std::string>& continue_keys = {},
                                         std::size_t run_limit = 1'000'000) {
    std::vector<ClaimedEvent> claimed = store().claim({.owner = owner,
                                                       .lease = lease,
                                                       .limit = limit,
                                                       .continue_keys = continue_keys,
                                                       .run_limit = run_limit});
    for (const ClaimedEvent& one : claimed) held_[one.lease.id.str()] = one.lease;
    return claimed;
  }
  /// The ids in the order of the claim; their leases are remembered in `held`.
  std::vector<std::string> claim(std::string_view owner, std::size_t limit = 100, Duration lease = 30s,
                                 const std::vector<std::string>& continue_keys = {},
                                 std::size_t run_limit = 1'000'000) {
    std::vector<std::string> ids;
    for (const ClaimedEvent& one : claim_events(owner, limit, lease, continue_keys, run_limit))
      ids.push_back(one.lease.id.str());
    return ids;
  }
  /// The lease of the last claim of this row.
  [[nodiscard]] LeaseRef held(const std::string& id) const { return held_.at(id); }

  std::size_t complete(const LeaseRef& lease, Completion::Kind kind, Duration delay = {}, int failed = 0,
                       std::string error = {}) {
    const Completion one{
        .lease = lease, .kind = kind, .failed = Attempt{failed}, .delay = delay, .error = std::move(error)};
    return store().complete({&one, 1});
  }
  std::size_t done(const std::string& id) { return complete(held(id), Completion::Kind::done); }
  std::size_t retry(const std::string& id, Duration delay, int failed = 1, std::string error = "no luck") {
    return complete(held(id), Completion::Kind::retry, delay, failed, std::move(error));
  }
  std::size_t dead(const std::string& id, std::string error = "hopeless") {
    return complete(held(id), Completion::Kind::dead, {}, 1, std::move(error));
  }

  [[nodiscard]] OutboxRecord record(const std::string& id) {
    const std::optional<OutboxRecord> found = admin().find(EventId(id));
    if (!found.has_value()) ADD_FAILURE() << "no row " << id;
    return found.value_or(OutboxRecord{});
  }
  [[nodiscard]] bool exists(const std::string& id) { return admin().find(EventId(id)).has_value(); }

 private:
  std::map<std::string, LeaseRef> held_;
};

inline std::vector<std::string> none() {
  return {};
}

}  // namespace postrider::conformance
