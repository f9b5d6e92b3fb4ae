// SPDX-License-Identifier: Apache-2.0
// Spill files as they may be found in a folder, whoever has written, joined, cut or edited them. An input is
// lines:
//
//     =a  =r  =17      what follows is the file that is appended to, the one being replayed, the full file 17
//     @5 text          a whole line of ours with the number 5, and a key that no other line has
//     &5 text          the same without its newline
//     !w !s            then, with the store open: an event is written; what was written is synced
//     !3 !0            a batch of at most 3 events is read, and all but one are committed; nothing is
//     committed !o               the process ends, and the next one opens the folder
//
// Any other line stands in the file as it is. Checked is what users are promised: that nothing vanishes
// without being counted, and that the books balance.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/require.hpp"
#include "logger/spill_names.hpp"
#include "logger/spill_reader.hpp"
#include "logger/spill_store.hpp"
#include "support/sim_folder.hpp"

namespace postrider::logger {
namespace {

using test::require;
using test::SimFolder;

constexpr std::size_t most_lines = 200;
constexpr std::size_t most_written = 20;
constexpr SpillLimits limits{.max_events = ~std::uint64_t{0}, .max_bytes = 1 << 30, .segment_bytes = 500};

std::uint64_t number_at(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string members_of(std::string_view text, const std::string& key) {
  return R"("applicationId":"a","details":")" + std::string(text) + R"(","idempotencyKey":")" + key + "\"";
}

/// The folder before anybody opens it, and what of it must come out.
struct Found {
  std::map<std::string, std::string> files{};
  std::map<std::string, std::size_t> owed{};  ///< keys of ours, and how often they came
  std::size_t foreign = 0;                    ///< lines of another system
  std::size_t damaged = 0;                    ///< lines that are neither, at least
  std::vector<std::string_view> actions{};
};

Found found_in(std::string_view input) {
  Found found;
  std::string name = active_name;
  std::size_t made = 0;
  for (std::size_t lines = 0; !input.empty() && lines < most_lines; ++lines) {
    const std::string_view line = input.substr(0, input.find('\n'));
    const bool ended = line.size() < input.size();
    input.remove_prefix(std::min(input.size(), line.size() + 1));
    const char kind = line.empty() ? ' ' : line.front();
    const std::string_view rest = line.substr(std::min<std::size_t>(line.size(), 1));
    if (kind == '=') {
      const SpillSeq number = number_at(rest);
      name = rest == "a"   ? active_name
             : rest == "r" ? replay_name
                           : segment_name(std::min(number, max_spill_seq), 0);
    } else if (kind == '!') {
      found.actions.push_back(rest);
    } else if (kind == '@' || kind == '&') {
      std::string& file = found.files[name];
      const std::string text(rest.substr(std::min(rest.size(), rest.find(' '))));
      append_spill_line(file, number_at(rest), members_of(text, "made-" + std::to_string(++made)));
      if (kind == '&') file.pop_back();
    } else {
      found.files[name].append(line).append(ended ? "\n" : "");
    }
  }
  // Judged when all is there: what follows a line may spoil it.
  for (const auto& [file, content] : found.files) {
    std::string_view rest = content;
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end + 1);
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const SpillLine parsed = parse_spill_line(line);
      if (parsed.kind == SpillLine::Kind::ours) found.owed.emplace(parsed.key, 0);
      if (parsed.kind == SpillLine::Kind::foreign) ++found.foreign;
      // One that hides two lines is taken apart, and both may be whole.
      if (parsed.kind == SpillLine::Kind::corrupt && find_glued_line(line) == std::string_view::npos)
        ++found.damaged;
    }
  }
  return found;
}

/// One process: its store, its reader, and its books.
class Life {
 public:
  Life(SimFolder& folder, Found& found)
      : found_(found), store_(folder, limits, [](LogLevel, std::string_view) {}) {
    // Whoever opens a folder and does nothing leaves it as it was.
    const SpillStore again(folder, limits, [](LogLevel, std::string_view) {});
    require(again.recovered() == store_.recovered(), "opened again, as many events are waiting");
    require(again.next_seq() == store_.next_seq(), "opened again, the next number is the same");
    require(again.cursor() == store_.cursor(), "opened again, the replay is at the same place");
    require(again.bytes() == store_.bytes(), "opened again, the files have the same size");
    removed_ += store_.take_removed();
    torn_ = store_.torn_tails();
  }

  void write(const std::string& key) {
    if (store_.stage(members_of("", key)) != SpillFull::no) return;
    require(store_.write_staged() == 0, "a disk without faults takes an event");
    ++written_;
    found_.owed.emplace(key, 0);
  }
  void sync() { require(store_.sync() == 0, "a disk without faults keeps what it has"); }

  /// False when there was nothing to read.
  bool replay(std::size_t most, bool but_one) {
    if (!reader_.read(batch_, most, std::size_t{1} << 20U)) return false;
    const std::size_t count = batch_.items.size() - (but_one && !batch_.items.empty() ? 1 : 0);
    for (std::size_t i = 0; i < count; ++i) {
      const SpillBatch::Item& item = batch_.items[i];
      ++delivered_;
      adopted_ += item.foreign ? 1 : 0;
      const auto owed = found_.owed.find(std::string(item.key));
      if (owed != found_.owed.end()) ++owed->second;
      foreign_ += owed == found_.owed.end() ? 1 : 0;
      require(item.members.find('\n') == std::string_view::npos, "an event is one line");
    }
    const SpillReader::Committed expected = SpillReader::preview(batch_, count);
    const SpillReader::Committed done = reader_.commit(batch_, count);
    require(done.lost == expected.lost && done.quarantined == expected.quarantined, "a preview is right");
    lost_ += done.lost;
    quarantined_ += done.quarantined;
    check_books();
    return true;
  }
  void replay_all() {
    std::size_t rounds = 0;
    while (replay(3, false))
      require(++rounds < 10 * (most_lines + most_written), "a replay comes to its end");
    require(store_.events() == 0, "after a replay nothing waits");
    require(store_.bytes() == 0, "after a replay the files are gone, or empty");
  }
  void check_books() {
    removed_ += store_.take_removed();
    require(store_.recovered() + adopted_ + written_ == delivered_ + lost_ + removed_ + store_.events(),
            "recovered + adopted + written = delivered + lost + waiting");
  }

  [[nodiscard]] std::size_t foreign() const { return foreign_; }
  [[nodiscard]] std::uint64_t set_aside() const { return quarantined_ + torn_; }

 private:
  Found& found_;
  SpillStore store_;
  SpillReader reader_{store_};
  SpillBatch batch_;
  std::uint64_t written_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t adopted_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t removed_ = 0;
  std::uint64_t quarantined_ = 0;
  std::uint64_t torn_ = 0;
  std::size_t foreign_ = 0;
};

void run(std::string_view input) {
  Found found = found_in(input);
  SimFolder folder;
  for (const auto& [name, content] : found.files) folder.put(name, content);

  std::size_t foreign = 0;
  std::uint64_t set_aside = 0;
  std::size_t lives = 1;
  std::size_t written = 0;
  auto life = std::make_unique<Life>(folder, found);
  const auto end_life = [&] {
    foreign += life->foreign();
    set_aside += life->set_aside();
    life.reset();
  };
  for (const std::string_view action : found.actions) {
    if (action.empty()) continue;
    if (action == "w" && written < most_written) life->write("written-" + std::to_string(++written));
    if (action == "s") life->sync();
    if (action == "o") {
      life->check_books();
      end_life();
      ++lives;
      life = std::make_unique<Life>(folder, found);
    }
    if (action.front() >= '0' && action.front() <= '9') {
      (void)life->replay(static_cast<std::size_t>(action.front() - '0') + 1, true);
    }
  }
  life->replay_all();
  end_life();
  for (const auto& [key, times] : found.owed) {
    require(times > 0, "every whole line of ours is delivered");
    // A process that ends may have delivered what its checkpoint does not tell.
    require(times == 1 || lives > 1 || !key.starts_with("made-"), "within one life each is delivered once");
  }
  require(foreign >= found.foreign, "every whole line of another system is delivered");
  require(set_aside >= found.damaged || lives > 1, "every damaged line is set aside and counted");
}

}  // namespace
}  // namespace postrider::logger

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  postrider::logger::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
