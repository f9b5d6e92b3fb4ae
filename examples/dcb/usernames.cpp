// SPDX-License-Identifier: Apache-2.0
#include "dcb.hpp"

namespace dcb {

using namespace postrider;

Projected<bool> Usernames::claimed(const std::string& username) {
  return store_.project(Projector<bool>{.query = Query::tag("username", username),
                                        .initial = false,
                                        .apply = [&](bool& is_claimed, const StoredEvent& event) {
                                          // A change has both names: the new one is taken, the old one is
                                          // free after a while.
                                          const bool given_up = event.type() == "AccountClosed" ||
                                                                (event.type() == "UsernameChanged" &&
                                                                 event.data() == "\"" + username + "\"");
                                          is_claimed = !given_up || now_() - event.occurred_at() < retention;
                                        }});
}

void Usernames::register_account(const std::string& account, const std::string& username) {
  const auto outcome = CommandExecutor(store_).execute([&](EventStore&) {
    const auto model = claimed(username);
    if (model.state()) throw Refused("username " + username + " is claimed");
    return CommandResult::conditional({AppendEvent::builder("AccountRegistered")
                                           .tag("account", account)
                                           .tag("username", username)
                                           .occurred_at(now_())},
                                      model.condition());
  });
  if (!outcome.is_done()) throw Refused("too busy, try again");
}

void Usernames::change(const std::string& account, const std::string& from, const std::string& to) {
  const auto outcome = CommandExecutor(store_).execute([&](EventStore&) {
    const auto model = claimed(to);
    if (model.state()) throw Refused("username " + to + " is claimed");
    return CommandResult::conditional({AppendEvent::builder("UsernameChanged")
                                           .tag("account", account)
                                           .tag("username", from)
                                           .tag("username", to)
                                           .occurred_at(now_())
                                           .data("\"" + from + "\"")},
                                      model.condition());
  });
  if (!outcome.is_done()) throw Refused("too busy, try again");
}

void Usernames::close(const std::string& account, const std::string& username) {
  store_.append({AppendEvent::builder("AccountClosed")
                     .tag("account", account)
                     .tag("username", username)
                     .occurred_at(now_())});
}

}  // namespace dcb
