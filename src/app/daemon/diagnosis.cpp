// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/diagnosis.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include "core/wording.hpp"
#include "storage/progress_store.hpp"

namespace postrider::daemon {
namespace {

/// What an error's own advice stands behind.
constexpr std::string_view hint_mark = ". Hint: ";
/// Younger than this, waiting is normal.
constexpr Duration patience = std::chrono::seconds{60};
/// … but what was tried and not taken is no news for a shorter time.
constexpr Duration patience_with_retries = std::chrono::seconds{10};
/// Of findings of the same kind so many are told; the last then says how many more there are.
constexpr std::size_t told_of_each = 5;

std::string name_of(const PairStatus& pair) {
  return pair.name.topic + "/" + pair.name.publisher;
}

std::string span_of(Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min";
  return std::to_string(seconds / 3600) + " h";
}

std::string number_of(std::int64_t count, std::string_view noun) {
  return counted(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), noun);
}

std::string lag_of(const PairStatus& pair) {
  return number_of(pair.lag_events, "event") + " behind, for " + span_of(pair.lag_time);
}

class Findings {
 public:
  /// An error at the end of the text that knows what is to be done says so itself.
  void add(Cause cause, std::string text, std::string hint) {
    if (const std::size_t mark = text.find(hint_mark); mark != std::string::npos) {
      hint = text.substr(mark + hint_mark.size());
      text.resize(mark);
    }
    std::size_t& count = counts_[static_cast<std::size_t>(cause)];
    if (++count <= told_of_each) all_.push_back({cause, std::move(text), std::move(hint)});
  }
  std::vector<Finding> take() {
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Finding& a, const Finding& b) { return a.cause < b.cause; });
    for (std::size_t cause = 0; cause < counts_.size(); ++cause) {
      if (counts_[cause] <= told_of_each) continue;
      const auto last = std::find_if(all_.rbegin(), all_.rend(), [&](const Finding& one) {
        return static_cast<std::size_t>(one.cause) == cause;
      });
      last->text += "; and " + std::to_string(counts_[cause] - told_of_each) + " more like it";
    }
    return std::move(all_);
  }

 private:
  std::vector<Finding> all_;
  std::vector<std::size_t> counts_ =
      std::vector<std::size_t>(static_cast<std::size_t>(Cause::queue_waits) + 1);
};

/// What waits for a publisher, and what it said to the node that leads.
struct Waiting {
  std::size_t pairs = 0;
  std::int64_t events = 0;
  std::string reason{};
};

std::map<std::string, Waiting> waiting_by_publisher(const Figures* figures) {
  std::map<std::string, Waiting> all;
  if (figures == nullptr) return all;
  for (const PairStatus& pair : figures->pairs) {
    Waiting& one = all[pair.name.publisher];
    ++one.pairs;
    if (pair.state != PairState::active || pair.lag_events == 0) continue;
    one.events = std::max(one.events, pair.lag_events);  // pairs may share the same events
    std::string_view error = pair.last_error;
    if (!error.starts_with(receiver_is_away)) continue;
    error.remove_prefix(receiver_is_away.size());
    if (error.starts_with(": ")) error.remove_prefix(2);
    one.reason = error;
  }
  return all;
}

bool anybody_leads(const Figures& figures) {
  return std::any_of(figures.leaders.begin(), figures.leaders.end(),
                     [](const LeaderStatus& leader) { return leader.alive; });
}

void look_at_sinks(const Figures* figures, const std::vector<SinkHealth>& sinks, Findings& findings) {
  std::map<std::string, Waiting> waiting = waiting_by_publisher(figures);
  const auto tell = [&](const std::string& name, const std::string& type, const std::string& reason,
                        std::int64_t events, bool tried_again = true) {
    // It does not stand at the end here.
    const std::size_t mark = reason.find(hint_mark);
    const std::string what = reason.substr(0, mark);
    const std::string own_hint =
        mark == std::string::npos ? std::string() : reason.substr(mark + hint_mark.size());
    findings.add(
        Cause::unhealthy_sink,
        "sink " + name + (type.empty() ? "" : " (" + type + ")") +
            (what.empty() ? " does not take events" : ": " + what) +
            (events > 0 ? "; " + std::to_string(events) + (events == 1 ? " event waits" : " events wait")
                        : ""),
        !own_hint.empty() ? own_hint
        : tried_again
            ? "look after its receiver; it is tried again by itself"
            : "look after its receiver; it is tried again once a node with [relay] enabled = true runs");
  };
  for (const SinkHealth& sink : sinks) {
    const Waiting of_it = waiting[sink.name];
    // What this node has heard is told first. But when another node publishes by now, and nothing waits, it
    // is history.
    const bool history = sink.healthy && of_it.pairs > 0 && of_it.events == 0;
    const std::string reason = sink.trouble.empty() ? of_it.reason : sink.trouble;
    if (!sink.healthy || (!reason.empty() && !history)) tell(sink.name, sink.type, reason, of_it.events);
    waiting.erase(sink.name);
  }
  for (const auto& [name, one] : waiting) {
    if (!one.reason.empty()) tell(name, {}, one.reason, one.events, anybody_leads(*figures));
  }
}

void look_at_blocker(const Figures& figures, Findings& findings) {
  if (!figures.blocker) return;
  const Blocker& blocker = *figures.blocker;
  findings.add(Cause::blocking_transaction,
               "process " + std::to_string(blocker.pid) +
                   (blocker.application.empty() ? "" : " (" + blocker.application + ")") +
                   " holds a transaction open for " + span_of(blocker.open_for) + "; " +
                   number_of(blocker.waiting, "session") + (blocker.waiting == 1 ? " waits" : " wait") +
                   " for it",
               "end it there, or: select pg_terminate_backend(" + std::to_string(blocker.pid) + ")");
}

bool leads(const Figures& figures, const std::string& node) {
  return std::any_of(figures.leaders.begin(), figures.leaders.end(),
                     [&](const LeaderStatus& leader) { return leader.node == node && leader.alive; });
}

/// Of one that is ACTIVE, has events to publish for a while and no error. Empty when it only takes its time.
void look_at_waiting_pair(const Figures& figures, const PairStatus& pair, Findings& findings) {
  if (pair.leader.empty()) {
    findings.add(
        Cause::unled_pair, "nobody leads pair " + name_of(pair) + ": " + lag_of(pair),
        "start a node that has this topic and publisher, or postrider topics forget it when nobody shall "
        "publish it any more");
    return;
  }
  const bool lately = pair.last_published_at && figures.at - *pair.last_published_at < patience;
  // A dead leader is a finding of its own.
  if (lately || !pair.last_error.empty() || !leads(figures, pair.leader)) return;
  findings.add(Cause::still_pair,
               "pair " + name_of(pair) + " publishes nothing, without an error: " + lag_of(pair),
               "a call to its publisher may hang: look into the log of node " + pair.leader +
                   ", which leads it, and after the receiver");
}

void look_at_pairs(const Figures& figures, Findings& findings) {
  const bool anybody = anybody_leads(figures);
  std::size_t waiting = 0;
  for (const PairStatus& pair : figures.pairs) {
    const std::string name = name_of(pair);
    if (pair.position > pair.head) {
      findings.add(
          Cause::store_set_back,
          "pair " + name + " stands at position " + std::to_string(static_cast<std::int64_t>(pair.position)) +
              ", but the event store ends at " + std::to_string(static_cast<std::int64_t>(pair.head)) +
              ": what comes in between would not be published",
          "the store was set back, without the progress; rewind the pair to the last position that is "
          "as it was");
    } else if (pair.state == PairState::failed) {
      findings.add(Cause::failed_pair,
                   "pair " + name + " has stopped at an event that was refused: " + pair.last_error,
                   "mend the receiver and resume the pair, or move it behind position " +
                       std::to_string(static_cast<std::int64_t>(pair.position) + 1));
    } else if (pair.state == PairState::paused && pair.lag_events > 0) {
      findings.add(Cause::paused_pair, "pair " + name + " is paused, " + lag_of(pair), "resume it");
    } else if (pair.state == PairState::active && pair.lag_events > 0 && !anybody) {
      ++waiting;
    } else if (pair.state == PairState::active && pair.error_count > 0) {
      findings.add(Cause::failing_pair,
                   "pair " + name + " has failed " + number_of(pair.error_count, "time") +
                       " and tries again: " + pair.last_error,
                   "look after its receiver; reset makes it try at once");
    } else if (pair.state == PairState::active && pair.lag_events > 0 && pair.lag_time >= patience) {
      look_at_waiting_pair(figures, pair, findings);
    }
  }
  if (waiting > 0) {
    findings.add(Cause::no_leader,
                 "nobody leads: " + counted(waiting, "pair") + (waiting == 1 ? " has" : " have") +
                     " events to publish",
                 "start a node with [relay] enabled = true");
  }
  for (const LeaderStatus& leader : figures.leaders) {
    if (leader.alive || leader.pairs == 0) continue;
    findings.add(Cause::dead_node,
                 "node " + leader.node + " is dead or cut off, last heard of " +
                     span_of(figures.at - leader.heartbeat) + " ago; " + number_of(leader.pairs, "pair") +
                     (leader.pairs == 1 ? " was its" : " were its"),
                 "another node takes them over within seconds; if none does, start one");
  }
}

void look_at_outbox(const OutboxCounts& outbox, bool runs_here, Findings& findings) {
  const bool retrying = outbox.retrying > 0;
  if (outbox.pending == 0 || outbox.oldest_undelivered < (retrying ? patience_with_retries : patience))
    return;
  std::string text = std::to_string(outbox.pending) +
                     (outbox.pending == 1 ? " event waits" : " events wait") +
                     " in the outbox, the oldest for " + span_of(outbox.oldest_undelivered);
  if (!retrying) {
    findings.add(Cause::outbox_waits, std::move(text),
                 "see that a node with [outbox] enabled = true runs, and that its sinks are healthy");
    return;
  }
  text += "; " + std::to_string(outbox.retrying) + (outbox.retrying == 1 ? " was" : " were") +
          " tried and not taken";
  if (!outbox.last_error.empty()) text += ", the last error: " + outbox.last_error;
  findings.add(Cause::outbox_waits, std::move(text),
               runs_here ? "look after the receiver; they are tried again by themselves"
                         : "look after the receiver; they are tried again as long as a node with [outbox] "
                           "enabled = true runs, or the application that delivers them");
}

}  // namespace

std::string_view to_string(Cause cause) noexcept {
  switch (cause) {
    case Cause::database_away:
      return "database-away";
    case Cause::database_refuses:
      return "database-refuses";
    case Cause::blocking_transaction:
      return "blocking-transaction";
    case Cause::no_leader:
      return "no-leader";
    case Cause::dead_node:
      return "dead-node";
    case Cause::store_set_back:
      return "store-set-back";
    case Cause::failed_pair:
      return "failed-pair";
    case Cause::unhealthy_sink:
      return "unhealthy-sink";
    case Cause::failing_pair:
      return "failing-pair";
    case Cause::paused_pair:
      return "paused-pair";
    case Cause::unled_pair:
      return "unled-pair";
    case Cause::still_pair:
      return "still-pair";
    case Cause::outbox_waits:
      return "outbox-waits";
    case Cause::queue_waits:
      return "queue-waits";
  }
  return {};
}

std::vector<Finding> diagnose(const Figures* figures, const Observer& observer) {
  Findings findings;
  look_at_sinks(figures, observer.sinks, findings);
  if (figures == nullptr) {
    findings.add(Cause::database_away, observer.phase, "see storage.url, and whether the database runs");
    return findings.take();
  }
  if (!figures->database_up && !figures->blocker) {
    findings.add(Cause::database_away, "the database cannot be reached: " + figures->trouble,
                 "see storage.url, and whether the database runs");
    return findings.take();  // the rest of the figures is empty
  }
  if (figures->refuses_writes) {
    findings.add(
        Cause::database_refuses, "the database answers, but does not take what is written",
        "the log says why: a full disk, one that is read-only, or a user without the right to write; it goes "
        "on by itself once that has changed");
  }
  look_at_blocker(*figures, findings);
  if (!figures->database_up) return findings.take();  // that is what it waits for; the rest is empty
  look_at_pairs(*figures, findings);
  look_at_outbox(figures->outbox, observer.runs_outbox, findings);
  if (figures->queue.pending > 0 && figures->queue.oldest_pending >= patience) {
    findings.add(Cause::queue_waits,
                 number_of(figures->queue.pending, "event") +
                     (figures->queue.pending == 1 ? " waits" : " wait") + " in the queue, the oldest for " +
                     span_of(figures->queue.oldest_pending),
                 "see that workers run, and that they have handlers for these types");
  }
  return findings.take();
}

std::string stuck_line(const std::vector<Finding>& findings) {
  if (findings.empty()) return "all is moving";
  std::string line = findings.front().text;
  if (findings.size() > 1) line += " (and " + std::to_string(findings.size() - 1) + " more)";
  return line;
}

}  // namespace postrider::daemon
