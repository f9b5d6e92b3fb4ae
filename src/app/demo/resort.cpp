// SPDX-License-Identifier: Apache-2.0
#include "app/demo/resort.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#if defined(POSTRIDER_WITH_HTTP)
#include "postrider/http_event_log_client.hpp"
#endif

namespace postrider::demo {

ResortBoard& ResortBoard::map(const Place& place) {
  const std::string path = (place.folder / "resort").string();
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) throw std::system_error(errno, std::generic_category(), path);
  // A file grown by ftruncate reads as zeros, which is what a fresh board is.
  if (::ftruncate(file, sizeof(ResortBoard)) != 0) {
    ::close(file);
    throw std::system_error(errno, std::generic_category(), path);
  }
  void* memory = ::mmap(nullptr, sizeof(ResortBoard), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  return *std::launder(static_cast<ResortBoard*>(memory));
}

void book(AsyncEventLogger& logger, std::uint64_t number) {
  const std::string booking = "BK-" + std::to_string(1000 + number);
  const std::string pet = "PET-" + std::to_string(number % 7 + 1);
  std::array<EventLogEntry, ResortBoard::events_of_a_booking> events{
      EventLogEntry::process_start("CreateBooking", "BookingCreated"),
      EventLogEntry::process_step("CheckIn", "RoomAssigned"),
      EventLogEntry::process_step("RoomService", "BowlFilled"),
      EventLogEntry::process_step("CheckOut", "BillPaid"),
      EventLogEntry::process_end("CreateBooking", "BookingCompleted")};
  const std::string details = std::string("Booking ").append(booking).append(" of ").append(pet);
  for (EventLogEntry& event : events) {
    event.correlation_id(booking).details(details).target_system("PET_RESORT");
  }
  logger.log(events);
}

#if defined(POSTRIDER_WITH_HTTP)

std::unique_ptr<AsyncEventLogger> resort_logger(const std::string& base_url,
                                                const std::filesystem::path& spillover, bool aggressive) {
  using namespace std::chrono_literals;
  LoggerOptions options;
  options.spillover_path = spillover.string();
  options.ring = RingMode::mapped;
  options.application_id = "pet-resort-api";
  options.originating_system = "PET_RESORT";
  options.base_retry_delay = 100ms;
  options.max_retry_delay = 400ms;
  options.circuit_breaker_reset = 1s;
  options.replay_interval = 300ms;
  if (aggressive) {
    options.queue_capacity = 10;
    options.circuit_breaker_threshold = 2;
    options.full_policy = FullPolicy::block;  // so small a queue had better wait for the disk
  }
  options.log = [](LogLevel, std::string_view) {};
  HttpClientOptions http;
  http.base_url = base_url;
  return std::make_unique<AsyncEventLogger>(std::make_shared<HttpEventLogClient>(http), std::move(options));
}

#else

std::unique_ptr<AsyncEventLogger> resort_logger(const std::string& /*base_url*/,
                                                const std::filesystem::path& /*spillover*/,
                                                bool /*aggressive*/) {
  return nullptr;
}

#endif

int run_resort(const Place& place) {
  const cli::Interrupts interrupts;
  ResortBoard& board = ResortBoard::map(place);
  const std::unique_ptr<AsyncEventLogger> logger = resort_logger(
      "http://127.0.0.1:" + std::to_string(board.port.load()), place.spillover(), board.aggressive);
  if (logger == nullptr) return 1;
  const std::uint64_t sent_before = board.sent;
  const std::uint64_t spilled_before = board.spilled;
  const std::uint64_t replayed_before = board.replayed;
  const std::uint64_t lost_before = board.lost;
  const auto show = [&] {
    const LoggerStats stats = logger->stats();
    board.sent = sent_before + stats.delivered;
    board.spilled = spilled_before + stats.spilled;
    board.replayed = replayed_before + stats.replayed;
    board.lost = lost_before + stats.all_lost() + stats.dead;
    board.on_disk = stats.on_disk;
    board.in_memory = stats.in_rings + stats.in_flight;
    board.circuit_open = stats.circuit_open;
  };
  show();
  ++board.lives;
  do {
    while (board.made < board.wanted) {
      book(*logger, board.made);
      ++board.made;
    }
    show();
  } while (!interrupts.wait_for(std::chrono::milliseconds{5}));
  logger->shutdown();
  show();
  return 0;
}

}  // namespace postrider::demo
