// SPDX-License-Identifier: Apache-2.0
#include "logger_common.hpp"

#include <cstdlib>
#include <filesystem>
#include <new>

namespace {

thread_local constinit std::uint64_t allocations = 0;

}  // namespace

// For the whole program: the benchmarks say how often a thread that logs asks for memory.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace postrider::bench {

std::uint64_t my_allocations() noexcept {
  return allocations;
}

EventLogEntry seed_entry() {
  EventLogEntry entry = EventLogEntry::process_start("CreateBooking", "BookingCreated");
  entry.application_id("pet-resort-api")
      .correlation_id("a1b2c3d4")
      .details("Booking BK-20260601-001 created for PET-001")
      .target_system("PET_RESORT")
      .originating_system("PET_RESORT")
      .user_id("system");
  return entry;
}

std::string seed_line() {
  return R"({"applicationId":"pet-resort-api","correlationId":"a1b2c3d4","processName":"CreateBooking",)"
         R"("processStatus":"PROCESS_START","step":"BookingCreated",)"
         R"("details":"Booking BK-20260601-001 created for PET-001","targetSystem":"PET_RESORT",)"
         R"("originatingSystem":"PET_RESORT","timestamp":"2026-06-01T10:15:30.123Z","userId":"system"})";
}

std::string scratch_folder(const std::string& name) {
  namespace fs = std::filesystem;
  const char* const chosen = std::getenv("POSTRIDER_BENCH_DIR");
  const fs::path base =
      chosen != nullptr ? fs::path(chosen) : fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path folder = base / ("bench-" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder.string();
}

}  // namespace postrider::bench
