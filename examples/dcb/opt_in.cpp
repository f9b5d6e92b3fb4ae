// SPDX-License-Identifier: Apache-2.0
#include "dcb.hpp"

namespace dcb {

using namespace postrider;

namespace {

/// What is known about one pair of address and token.
struct SignUp {
  std::optional<TimePoint> initiated{};
  bool used = false;
};

}  // namespace

void OptIn::initiate(const std::string& mail, const std::string& token) {
  store_.append(
      {AppendEvent::builder("SignUpInitiated").tag("mail", mail).tag("otp", token).occurred_at(now_())});
}

void OptIn::confirm(const std::string& mail, const std::string& token) {
  const auto outcome = CommandExecutor(store_).execute([&](EventStore& store) {
    const auto model =
        store.project(Projector<SignUp>{.query = Query::of({{.types = {"SignUpInitiated", "SignUpConfirmed"},
                                                             .tags = {{"mail", mail}, {"otp", token}}}}),
                                        .apply = [](SignUp& state, const StoredEvent& event) {
                                          if (event.type() == "SignUpInitiated")
                                            state.initiated = event.occurred_at();
                                          if (event.type() == "SignUpConfirmed") state.used = true;
                                        }});
    if (!model.state().initiated) throw Refused("no pending sign-up for this token and address");
    if (model.state().used) throw Refused("the token has been used");
    if (now_() - *model.state().initiated > valid) throw Refused("the token has expired");
    return CommandResult::conditional(
        {AppendEvent::builder("SignUpConfirmed").tag("mail", mail).tag("otp", token).occurred_at(now_())},
        model.condition());
  });
  if (!outcome.is_done()) throw Refused("too busy, try again");
}

}  // namespace dcb
