// SPDX-License-Identifier: Apache-2.0
#include "app/cli/event_page.hpp"

#include <boost/json.hpp>
#include <ostream>

namespace postrider::cli {

void print_event(std::ostream& out, Format format, boost::json::object event, bool colour) {
  if (format == Format::json) {
    print_object(out, format, event, colour);
    return;
  }
  Table attempts({{"attempt", "ATTEMPT", true},
                  {"at", "AT"},
                  {"node", "NODE"},
                  {"outcome", "OUTCOME"},
                  {"error", "ERROR"}});
  if (const boost::json::value* const history = event.if_contains("history")) {
    for (const boost::json::value& one : history->as_array()) attempts.add(one.as_object());
    event.erase("history");
  }
  print_object(out, format, event, colour);
  if (attempts.empty()) return;
  out << '\n';
  attempts.print(out, format, {}, colour);
}

}  // namespace postrider::cli
