// SPDX-License-Identifier: Apache-2.0
// How fast an outage can be taken to disk, and how fast it comes back.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "logger.hpp"
#include "logger/checksum.hpp"
#include "logger/entry_json.hpp"
#include "logger/lane.hpp"
#include "logger/spill_reader.hpp"
#include "logger/spill_store.hpp"
#include "logger_common.hpp"

namespace postrider::bench {
namespace {

using namespace logger;

constexpr std::size_t block = 1 << 20;

SpillLimits limits(bool durable) {
  return {.max_events = 1'000'000'000, .max_bytes = std::uint64_t{1} << 40U, .durable = durable};
}

/// Writes `events` events as the writer of the logger does; returns the bytes.
std::uint64_t spill(const std::string& folder, std::size_t events, bool group) {
  const auto files = open_spill_folder(folder);
  SpillStore store(*files, limits(true), [](LogLevel, std::string_view) {});
  const EventLogEntry entry = seed_entry();
  const EntryDefaults defaults;
  TimeWriter times;
  std::array<char, EventRef::key_room> key{};
  auto last_sync = std::chrono::steady_clock::now();
  const auto write = [&] {
    if (store.write_staged() != 0) throw std::runtime_error("cannot write");
    const auto now = std::chrono::steady_clock::now();
    if (!group && now - last_sync < std::chrono::seconds{1}) return;
    last_sync = now;
    if (store.sync() != 0) throw std::runtime_error("cannot sync");
  };
  for (std::size_t i = 0; i < events; ++i) {
    char* const number = put(put_hex(key.data(), 0x0123456789abcdef), "-");
    const char* const key_end = std::to_chars(number, key.data() + key.size(), i).ptr;
    const EntryStamp stamp{TimePoint{std::chrono::seconds{1'780'000'000} + std::chrono::microseconds{i}},
                           {key.data(), static_cast<std::size_t>(key_end - key.data())}};
    char* const line = store.open_line(members_room(entry.packed(), stamp, defaults));
    if (store.close_line(write_members(line, entry.packed(), stamp, defaults, times)) != SpillFull::no)
      throw std::runtime_error("full");
    if (store.staged_bytes() >= block) write();
  }
  write();
  return store.bytes();
}

double bare_writes(const std::string& path, std::uint64_t bytes, bool sync) {
  const std::string data(block, 'x');
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const Stopwatch watch;
  for (std::uint64_t left = bytes; left > 0;) {
    const std::size_t size = std::min<std::uint64_t>(left, block);
    if (::write(file, data.data(), size) != static_cast<ssize_t>(size))
      throw std::runtime_error("cannot write");
    if (sync && ::fdatasync(file) != 0) throw std::runtime_error("cannot sync");
    left -= size;
  }
  const double seconds = watch.seconds();
  ::close(file);
  return seconds;
}

}  // namespace

void logger_spill(Report& report, const std::string& line, bool group) {
  const std::string folder = scratch_folder("logger-spill");
  const std::size_t events = group ? 60'000 : 600'000;
  std::uint64_t bytes = 0;
  const auto megabytes = [&](double seconds) { return static_cast<double>(bytes) / 1e6 / seconds; };
  const auto ours = [&] {
    std::filesystem::remove_all(folder + "/spill");
    const Stopwatch watch;
    bytes = spill(folder + "/spill", events, group);
    return megabytes(watch.seconds());
  };
  const auto bare = [&] { return megabytes(bare_writes(folder + "/bare", bytes, group)); };
  const Medians medians = interleave(line, default_rounds, ours, bare);
  report.print({line,
                medians.ours,
                "MB/s",
                group ? "bare-write-fdatasync-1MB" : "bare-write-1MB",
                medians.bare,
                Target::at_least(group ? 0.6 : 0.7),
                {{"rounds", double{default_rounds}}, {"spread", medians.spread}}});
  std::filesystem::remove_all(folder);
}

void logger_replay(Report& report, const std::string& line) {
  constexpr std::size_t events = 1'000'000;
  const std::string folder = scratch_folder("logger-replay");
  const std::string source = folder + "/source";
  spill(source, events, false);
  NullClient client;
  // Reader, checkpoint and client, in batches of 500: what the replay does but for its pauses.
  const auto ours = [&] {
    const std::string copy = folder + "/copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(source, copy);
    const auto files = open_spill_folder(copy);
    SpillStore store(*files, limits(false), [](LogLevel, std::string_view) {});
    SpillReader reader(store);
    SpillBatch batch;
    std::vector<OutgoingEvent> outgoing;
    std::size_t seen = 0;
    const Stopwatch watch;
    while (reader.read(batch, 500, block)) {
      outgoing.clear();
      for (const SpillBatch::Item& item : batch.items) outgoing.push_back({item.members, item.key});
      if (!outgoing.empty()) (void)client.send(outgoing);
      seen += outgoing.size();
      reader.commit(batch, outgoing.size());
    }
    const double seconds = watch.seconds();
    if (seen != events) throw std::runtime_error("read " + std::to_string(seen));
    return static_cast<double>(events) / seconds;
  };
  const auto bare = [&] {
    std::size_t lines = 0;
    std::uint64_t sum = 0;
    std::string buffer(2 * block, '\0');
    const Stopwatch watch;
    for (const auto& entry : std::filesystem::directory_iterator(source)) {
      const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
      std::size_t kept = 0;
      for (ssize_t got = 0; (got = ::read(file, buffer.data() + kept, buffer.size() - kept)) > 0;) {
        const std::size_t end = kept + static_cast<std::size_t>(got);
        std::size_t at = 0;
        while (const void* newline = std::memchr(buffer.data() + at, '\n', end - at)) {
          const auto size = static_cast<std::size_t>(static_cast<const char*>(newline) - buffer.data()) - at;
          sum += checksum({buffer.data() + at, size});
          at += size + 1;
          ++lines;
        }
        kept = end - at;
        std::memmove(buffer.data(), buffer.data() + at, kept);
      }
      ::close(file);
    }
    const double seconds = watch.seconds();
    if (lines < events || sum == 0) throw std::runtime_error("bare: " + std::to_string(lines));
    return static_cast<double>(events) / seconds;
  };
  const Medians medians = interleave(line, default_rounds, ours, bare);
  report.print({line,
                medians.ours,
                "lines/s",
                "memchr-checksum-pass",
                medians.bare,
                Target::at_least(0.3),
                {{"rounds", double{default_rounds}}, {"spread", medians.spread}}});
  std::filesystem::remove_all(folder);
}

}  // namespace postrider::bench
