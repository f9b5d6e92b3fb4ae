// SPDX-License-Identifier: Apache-2.0
// An operator's program that the crash tests kill in the middle of a verb.
//
//   admin_child URL SCHEMA VERB
#include <string>

#include "postrider/postrider.hpp"
#include "support/child_main.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

int run(int argc, char** argv) {
  if (argc != 4) throw std::invalid_argument("usage: admin_child URL SCHEMA VERB");
  StorageOptions options;
  options.schema = Identifier(argv[2]);
  const auto storage = open(argv[1], options);
  QueueAdmin admin{*storage};
  const std::string verb = argv[3];
  if (verb == "cancel") {
    admin.cancel({}, "why");
  } else if (verb == "requeue") {
    admin.requeue({.statuses = {QueueStatus::processing}});
  } else if (verb == "release") {
    admin.release({});
  } else if (verb == "replay") {
    admin.replay({});
  } else if (verb == "purge") {
    (void)admin.purge_log({.older_than = 0s, .batch_size = 200});
  } else if (verb == "outbox-cancel") {
    OutboxAdmin(*storage).cancel({}, "why");
  } else if (verb == "outbox-requeue") {
    OutboxAdmin(*storage).requeue({});
  } else {
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace postrider::test

int main(int argc, char** argv) {
  return postrider::test::child_main(argc, argv, postrider::test::run);
}
