// SPDX-License-Identifier: Apache-2.0
// The first chapter: the transactional outbox.
#include <optional>
#include <unordered_set>
#include <vector>

#include "app/demo/actor.hpp"
#include "app/demo/backstage.hpp"
#include "app/demo/book.hpp"
#include "app/demo/shop.hpp"
#include "postrider/open.hpp"
#include "postrider/outbox_admin.hpp"

namespace postrider::demo {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

/// What the books say at the end.
struct BalanceSheet {
  std::uint64_t orders = 0;     ///< committed, from the shop's own table
  std::uint64_t cancelled = 0;  ///< rolled back
  std::uint64_t delivered = 0;  ///< distinct events in the mail book
  std::uint64_t dead = 0;
  std::uint64_t lost = 0;     ///< ordered, yet neither mailed nor dead
  std::uint64_t phantom = 0;  ///< mailed, yet never ordered

  [[nodiscard]] bool balanced() const noexcept {
    return lost == 0 && phantom == 0 && orders == delivered + dead;
  }
};

/// The live table: drawn over itself on a terminal, a line every two seconds elsewhere.
class OrderBoard {
 public:
  OrderBoard(Stage& stage, Storage& storage, const MailServer& mails)
      : stage_(stage), storage_(storage), mails_(mails) {
    std::fprintf(stage_.out(), "%5s %9s %9s %7s %5s %7s  %s\n", "sec", "published", "delivered", "retried",
                 "dead", "pending", "what happens");
  }

  [[nodiscard]] OutboxCounts counts() const { return OutboxAdmin(storage_).counts(); }

  /// `what` ends a line that stays.
  void draw(const char* what, bool stays) {
    const auto now = SteadyClock::now();
    if (!stage_.terminal() && !stays && now < next_line_) return;
    next_line_ = now + 2s;
    const OutboxCounts outbox = counts();
    const long long orders = outbox.pending + outbox.done + outbox.dead;
    std::fprintf(stage_.out(), "%s%5.1f %9lld %9llu %7llu %5lld %7lld  %s%s", stage_.terminal() ? "\r" : "",
                 std::chrono::duration<double>(now - begin_).count(), orders,
                 static_cast<unsigned long long>(mails_.delivered.load()),
                 static_cast<unsigned long long>(mails_.refused_once.load()),
                 static_cast<long long>(outbox.dead), static_cast<long long>(outbox.pending), what,
                 !stage_.terminal() ? "\n"
                 : stays            ? "\033[K\n"
                                    : "\033[K");
  }
  /// Draws for that long. False when it is time to leave.
  bool show(std::chrono::milliseconds time, const char* what) {
    const auto end = SteadyClock::now() + time;
    while (SteadyClock::now() < end) {
      draw(what, false);
      if (!stage_.pause(100ms)) return false;
    }
    return true;
  }

 private:
  Stage& stage_;
  Storage& storage_;
  const MailServer& mails_;
  SteadyClock::time_point begin_ = SteadyClock::now();
  SteadyClock::time_point next_line_ = begin_;
};

std::unordered_set<std::string> dead_letters(Storage& storage) {
  constexpr std::size_t page_size = 1000;
  OutboxAdmin admin(storage);
  std::unordered_set<std::string> dead;
  std::vector<OutboxRecord> page = admin.dead_letters({}, page_size);
  while (!page.empty()) {
    for (const OutboxRecord& record : page) dead.emplace(record.id.view());
    const OutboxRecord last = page.back();
    page = admin.dead_letters({}, page_size, &last);
  }
  return dead;
}

BalanceSheet check_books(Storage& storage, const Place& place) {
  const auto mails = Book::read(place.mails());
  const std::unordered_set<std::string> dead = dead_letters(storage);
  BalanceSheet sheet{.cancelled = Book::read(place.cancelled()).size(),
                     .delivered = mails.size(),
                     .dead = dead.size(),
                     .phantom = mails.size()};
  Transaction tx = storage.begin();
  const Rows orders = tx.execute("select event from shop_order");
  sheet.orders = orders.size();
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const std::string& event = orders.text(i, 0);
    const bool mailed = mails.contains(event);
    sheet.phantom -= mailed ? 1 : 0;
    if (!mailed && !dead.contains(event)) ++sheet.lost;
  }
  return sheet;
}

void print(const Stage& stage, const BalanceSheet& sheet) {
  const auto line = [&](const char* what, std::uint64_t count) {
    std::fprintf(stage.out(), "  %-52s %10llu\n", what, static_cast<unsigned long long>(count));
  };
  std::fprintf(stage.out(), "\nThe books\n");
  line("orders committed (the shop's own table)", sheet.orders);
  line("orders rolled back", sheet.cancelled);
  line("events delivered (each counted once)", sheet.delivered);
  line("dead letters, kept for replay", sheet.dead);
  line("lost", sheet.lost);
  line("phantoms (delivered, yet never committed)", sheet.phantom);
}

/// The shop opens, is killed, and opens again; meanwhile the mail server goes away and comes back. False when
/// it is time to leave.
bool trade(Stage& stage, OrderBoard& board, MailServer& mails, std::chrono::milliseconds length) {
  {
    Actor shop(stage, "shop");
    if (!board.show(length * 2 / 5, "the shop is open")) return false;
    shop.end(SIGKILL);
    board.draw("kill -9 of the shop", true);
  }
  Actor shop(stage, "shop");
  if (!board.show(length / 5, "open again")) return false;
  mails.away = true;
  if (!board.show(length / 5, "the mail server is away: events wait")) return false;
  mails.away = false;
  board.draw("the mail server is back", true);
  if (!board.show(length / 5, "it catches up")) return false;
  shop.end(SIGTERM);
  board.draw("closing time", true);
  return true;
}

}  // namespace

Result play_outbox(Stage& stage, Backstage& backstage, std::chrono::seconds length) {
  std::fprintf(
      stage.out(),
      "\nOutbox: a shop takes orders for %lld seconds. Each order and its event commit in one\n"
      "transaction, one in twelve is rolled back. The daemon delivers to a mail server that is busy\n"
      "at times, knows some addresses not at all, and is away for a while; and the shop is killed.\n\n",
      static_cast<long long>(length.count()));
  const std::unique_ptr<Storage> storage = open(stage.place().url());
  const Shop tables(*storage);
  OrderBoard board(stage, *storage, backstage.mail_server());
  if (!trade(stage, board, backstage.mail_server(), length)) return {};
  if (!stage.await([&] { return board.counts().pending == 0; }, 60s) && stage.left()) return {};
  board.draw("all done", true);

  const BalanceSheet sheet = check_books(*storage, stage.place());
  print(stage, sheet);
  const std::uint64_t retried = backstage.mail_server().refused_once;
  const std::uint64_t turned_away = backstage.mail_server().turned_away;
  const bool good =
      sheet.balanced() && sheet.delivered > 0 && sheet.dead > 0 && retried > 0 && turned_away > 0;
  return {.good = good,
          .story = std::to_string(sheet.orders) + " orders committed = " + std::to_string(sheet.delivered) +
                   " delivered + " + std::to_string(sheet.dead) + " dead letters; " +
                   std::to_string(sheet.lost) + " lost",
          .figures = {{"orders", sheet.orders},
                      {"rolledBack", sheet.cancelled},
                      {"delivered", sheet.delivered},
                      {"retried", retried},
                      {"turnedAway", turned_away},
                      {"dead", sheet.dead},
                      {"lost", sheet.lost},
                      {"phantoms", sheet.phantom}}};
}

}  // namespace postrider::demo
