// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <iosfwd>

#include "app/cli/output.hpp"

namespace postrider::cli {

/// One event: a line per member, and the attempts that failed (`history`) as a table below. As JSON it is one
/// object.
void print_event(std::ostream& out, Format format, boost::json::object event, bool colour);

}  // namespace postrider::cli
