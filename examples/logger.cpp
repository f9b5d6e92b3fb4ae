// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <postrider/async_logger.hpp>

// Where events go. For an Event Log API over HTTP take HttpEventLogClient instead (postrider::http).
class Console : public postrider::EventLogClient {
 public:
  postrider::SendResult send(std::span<const postrider::OutgoingEvent> events) override {
    for (const auto& event : events) std::cout << "{" << event.members << "}\n";
    return {};  // delivered
  }
};

int main() {
  using namespace postrider;

  AsyncEventLogger logger{std::make_shared<Console>(),
                          {.spillover_path = "./spillover",  // outages go here, and come back by themselves
                           .ring = RingMode::mapped,         // what log() has accepted survives kill -9
                           .application_id = "pet-resort-api"}};

  logger.log(EventLogEntry::process_start("CreateBooking", "BookingCreated")
                 .correlation_id("a1b2c3d4")
                 .details("Booking BK-1 created for PET-001")
                 .extra("nights", 3));  // tens of nanoseconds; never blocks, never allocates

  return logger.flush() ? 0 : 1;
}
