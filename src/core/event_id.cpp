// SPDX-License-Identifier: Apache-2.0
#include "postrider/event_id.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>

#include "core/ulid.hpp"
#include "core/utf8.hpp"
#include "core/wording.hpp"
#include "postrider/clock.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

std::mt19937_64 seeded_engine() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
  return std::mt19937_64(seed);
}

/// The generator behind `new_event_id`. Never destroyed: ids may be wanted while the program's statics go.
struct ProcessGenerator {
  explicit ProcessGenerator(const ProcessGenerator* before_fork) : parent(before_fork) {}
  UlidGenerator ulids{Clock::system(), seeded_engine()};
  const ProcessGenerator* parent;  // of the process that forked us; kept reachable for leak checkers
};

std::atomic<ProcessGenerator*> current_generator{nullptr};
std::atomic<ProcessGenerator*> parent_generator{nullptr};

/// A forked child would go on counting where its parent does, and its copy of the mutex may be locked for
/// ever by a thread that does not exist here: the child starts a generator of its own.
void forget_generator() noexcept {
  ProcessGenerator* const parent = current_generator.exchange(nullptr);
  if (parent != nullptr) parent_generator.store(parent);
}

const int fork_handler_error = pthread_atfork(nullptr, nullptr, forget_generator);

UlidGenerator& process_generator() {
  if (ProcessGenerator* const found = current_generator.load()) return found->ulids;
  if (fork_handler_error != 0) {
    throw Error(ErrorCode::unsupported, "cannot make event ids",
                "pthread_atfork failed, ids could repeat after fork()",
                "free some memory before the program starts");
  }
  auto made = std::make_unique<ProcessGenerator>(parent_generator.load());
  ProcessGenerator* other = nullptr;
  if (current_generator.compare_exchange_strong(other, made.get())) return made.release()->ulids;
  return other->ulids;
}

}  // namespace

EventId::EventId(std::string_view text) {
  const auto allowed = [](char c) { return c > ' ' && c <= '~'; };
  if (text.empty() || text.size() > max_size || !std::all_of(text.begin(), text.end(), allowed)) {
    throw Error(ErrorCode::invalid_argument,
                "'" + utf8_repaired(utf8_prefix(text, max_size + 1)) + "' cannot be an event id",
                "it must be 1 to 36 printable ASCII characters without spaces, this has " +
                    counted(text.size(), "byte"),
                "give a ULID or a UUID, or none to get a new ULID");
  }
  std::copy(text.begin(), text.end(), text_.begin());
  size_ = static_cast<std::uint8_t>(text.size());
}

EventId new_event_id() {
  return process_generator().next();
}

}  // namespace postrider
