// SPDX-License-Identifier: Apache-2.0
#include "dcb.hpp"

namespace dcb {

using namespace postrider;

std::int64_t Invoices::create(const std::string& data) {
  std::int64_t number = 0;
  const auto outcome = CommandExecutor(store_, {.max_attempts = 1000}).execute([&](EventStore& store) {
    // The last one is enough: read backwards, and no more than one.
    const Query invoices = Query::type("InvoiceCreated");
    EventStream newest = store.read(invoices, {.limit = 1, .backwards = true});
    const std::optional<StoredEvent> last = newest.next();
    number = last ? std::stoll(last->tags().front().value) + 1 : 1;
    return CommandResult::conditional(
        {AppendEvent::builder("InvoiceCreated").tag("invoice", std::to_string(number)).data(data)},
        {.query = invoices, .after = newest.head()});
  });
  if (!outcome.is_done()) throw Refused("too busy, try again");
  return number;
}

}  // namespace dcb
