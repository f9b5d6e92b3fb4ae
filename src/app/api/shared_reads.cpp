// SPDX-License-Identifier: Apache-2.0
#include "app/api/shared_reads.hpp"

#include <utility>

namespace postrider::api {

http::Response SharedReads::get(const std::string& key, const std::function<http::Response()>& read) {
  std::shared_ptr<Flight> flight;
  bool mine = false;
  {
    const MutexLock lock(mutex_);
    Flights& flights = flights_[key];
    std::shared_ptr<Flight>& place = flights.running == nullptr ? flights.running : flights.next;
    mine = place == nullptr;
    if (mine) place = std::make_shared<Flight>();
    flight = place;
    // The entry stays while one of its flights is not done.
    while (mine ? flights.running != flight : !flight->done) changed_.wait(mutex_);
  }
  if (mine) {
    run(*flight, read);
    {
      const MutexLock lock(mutex_);
      flight->done = true;
      const auto entry = flights_.find(key);
      entry->second.running = std::exchange(entry->second.next, nullptr);
      if (entry->second.running == nullptr) flights_.erase(entry);
    }
    changed_.notify_all();
  }
  if (flight->error) std::rethrow_exception(flight->error);
  return flight->response;
}

void SharedReads::run(Flight& flight, const std::function<http::Response()>& read) {
  try {
    flight.response = read();
  } catch (...) {
    flight.error = std::current_exception();
  }
}

}  // namespace postrider::api
