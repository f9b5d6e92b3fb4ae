// SPDX-License-Identifier: Apache-2.0
#include "app/cli/explanations.hpp"

#include <array>

namespace postrider::cli {
namespace {

constexpr std::array all{
    // ErrorCode
    Explanation{"invalid_argument", kind_error, "A value was refused; the message names it and its bound.",
                "Correct the value. Trying again unchanged fails again."},
    Explanation{"not_in_transaction", kind_error, "publish was called without an active transaction.",
                "Begin one with storage.begin(), or adopt your own, and publish before it ends."},
    Explanation{"wrong_storage", kind_error,
                "A transaction of one database was handed to a store of another.",
                "Publish through the storage that the transaction belongs to."},
    Explanation{"unavailable", kind_error, "The database cannot be reached, or the connection broke.",
                "Look whether it runs and whether the URL is right: postrider doctor. It is retried where "
                "that is safe."},
    Explanation{
        "timeout", kind_error, "A bounded wait (for a connection, a lock, a drain) ran out.",
        "Find who holds it: postrider doctor names transactions that are open for long. Or raise pool_size."},
    Explanation{"conflict", kind_error, "A unique value exists already, for example the id of an event.",
                "Whoever repeats a request: it has happened before. Otherwise choose another id."},
    Explanation{"contention", kind_error, "A deadlock, a serialization failure or a busy lock.",
                "Run the whole transaction again. If it is frequent, make transactions shorter."},
    Explanation{"storage_full", kind_error, "The disk or a quota is exhausted.",
                "Make room: postrider outbox purge --older-than 30d, and the same of queue and eventlog. It "
                "goes on by "
                "itself then."},
    Explanation{"schema", kind_error, "Tables are missing, half migrated, or newer than this program.",
                "postrider migrate brings them to this program's version; newer ones need a newer program."},
    Explanation{"unsupported", kind_error, "This build or this server cannot do it.",
                "postrider version says which databases this build has; the message says what is missing."},
    Explanation{"hook_failed", kind_error,
                "The transaction has ended as asked, but a callback after it threw.",
                "Do not repeat the transaction. Mend the callback that the message names."},
    Explanation{"closed", kind_error, "The object was stopped.",
                "Nothing was done. Start it again, or ask earlier in the shutdown."},
    Explanation{"database", kind_error, "Any other failure that the database reported.",
                "Its own words are in the message, with the SQLSTATE."},

    // LossReason
    Explanation{"queue_full", kind_loss, "There was no room in memory, and no spill folder.",
                "Give the logger a spillover_path; raise queue_capacity for bursts."},
    Explanation{"retries_exhausted", kind_loss, "All retries failed, and there is no spill folder.",
                "Give the logger a spillover_path. Look why the receiver does not answer."},
    Explanation{"retry_requeue_failed", kind_loss,
                "A retry found the queue full, and there is no spill folder.",
                "Give the logger a spillover_path; raise queue_capacity."},
    Explanation{"retry_executor_rejected", kind_loss,
                "It failed during the shutdown, and there is no spill folder.",
                "Give the logger a spillover_path; raise shutdown_timeout."},
    Explanation{
        "shutdown_in_progress", kind_loss,
        "log() was called after shutdown(), or it was still queued at its end without a spill folder.",
        "Log earlier, shut down later; give the logger a spillover_path."},
    Explanation{"shutdown_pending_retry", kind_loss,
                "It waited for a retry at the shutdown; no spill folder.",
                "Give the logger a spillover_path."},
    Explanation{"spillover_queue_full", kind_loss,
                "Neither the queue nor the writer of the spill files keeps up.",
                "The disk is too slow for the burst: raise queue_capacity and ring_bytes."},
    Explanation{"spillover_max_events", kind_loss, "The spill files have max_spillover_events.",
                "Raise it, or bring the receiver back: postrider spill show FOLDER says how much waits."},
    Explanation{"spillover_max_size", kind_loss, "The spill files have max_spillover_bytes.",
                "Raise it, or bring the receiver back: postrider spill show FOLDER says how much waits."},
    Explanation{"spillover_io_error", kind_loss, "The disk refused.",
                "Look at the disk that holds the spill folder: room, rights, health."},
    Explanation{"serialization", kind_loss, "The event was too large, or could not be read.",
                "Shorten its details; the application's log names it."},
    Explanation{"rejected", kind_loss,
                "The receiver refused it for good, and it could not be kept as a dead letter.",
                "Look at the receiver's answer in the application's log; mind the disk."},
    Explanation{"corrupted", kind_loss,
                "It was damaged on disk; what is left of it is in the quarantine file.",
                "Look at the disk. postrider spill show FOLDER counts damaged lines."},
    Explanation{
        "invalid_entry", kind_loss, "The receiver would refuse it: a field is missing or out of bounds.",
        "Correct what the application logs; its log names the field, and so does EventLogEntry::fault()."},
    Explanation{
        "spillover_removed", kind_loss, "Somebody has removed spill files while they were needed.",
        "Leave the spill folder to the logger; postrider spill show FOLDER looks into it without harm."},

    // Answers of the API
    Explanation{"answer-too-large", kind_problem, "The answer would be larger than the API sends.",
                "Ask for less: a smaller limit, then go on behind the last one."},
    Explanation{"body-too-large", kind_problem, "The body is larger than this request may have.",
                "Send a batch in parts; a single event needs shorter texts."},
    Explanation{"busy", kind_problem, "Too much is going on at this moment.",
                "Try again after what Retry-After says; send with fewer connections."},
    Explanation{"conflict", kind_problem, "What was asked for contradicts what is there.",
                "Look at how it stands now, then decide again."},
    Explanation{"content-encoding", kind_problem, "The body is packed in a way that is not understood.",
                "Send it plain, or with Content-Encoding: gzip."},
    Explanation{"content-type", kind_problem, "Bodies are JSON here.",
                "Send Content-Type: application/json."},
    Explanation{"expectation", kind_problem, "An Expect header that is not understood.",
                "Send it without, or with Expect: 100-continue."},
    Explanation{"forbidden", kind_problem, "The token's role does not reach this far.",
                "Use a token with a higher role: postrider token create -c postrider.toml --name NAME --role "
                "operator."},
    Explanation{"foreign-page", kind_problem, "A page of another origin made a browser ask.",
                "Open the dashboard itself. Programs do not send Sec-Fetch-Site."},
    Explanation{"header-too-large", kind_problem, "The header has more than it may have.",
                "Send fewer, or shorter, header lines and cookies."},
    Explanation{"host-missing", kind_problem, "HTTP/1.1 without a Host header.", "Send one."},
    Explanation{"host-refused", kind_problem, "The Host header names a host that this server is not.",
                "Add the name to server.allowed-hosts, or ask by the address."},
    Explanation{"http-version", kind_problem, "A version of HTTP that is not spoken here.", "Use HTTP/1.1."},
    Explanation{"idempotency-key-header", kind_problem,
                "The Idempotency-Key header cannot be used like this.",
                "Put idempotencyKey into each event of a batch."},
    Explanation{"internal", kind_problem, "Something failed that should not.",
                "The server's log has the details. Please report it."},
    Explanation{"invalid", kind_problem, "A value was refused; detail names it.", "Correct it."},
    Explanation{"invalid-batch", kind_problem, "The batch as a whole is not as it should be.",
                "Send a JSON array of events."},
    Explanation{"invalid-event", kind_problem,
                "A field of an event is missing or out of bounds; detail names it.",
                "Correct the event. Sending it again unchanged fails again."},
    Explanation{"invalid-gzip", kind_problem, "The body is not gzip, or damaged.",
                "Pack it again, or send it plain."},
    Explanation{"invalid-http", kind_problem, "The request is not HTTP as the standard has it.",
                "Look at what sends it, and at proxies in between."},
    Explanation{"invalid-json", kind_problem, "The body is not JSON; detail says where.", "Correct it."},
    Explanation{"invalid-parameter", kind_problem, "A parameter or member is unknown or out of bounds.",
                "Detail names it; hint names the nearest that there is."},
    Explanation{"invalid-target", kind_problem, "The path or query of the request cannot be read.",
                "Encode special characters with percent signs."},
    Explanation{"method-not-allowed", kind_problem, "The path is there, but not with this method.",
                "The Allow header lists those that are."},
    Explanation{"no-answer", kind_problem, "The handler ended without an answer.",
                "The server's log has the details. Please report it."},
    Explanation{"no-body-expected", kind_problem, "This request takes no body.", "Send it without one."},
    Explanation{"no-such-event", kind_problem, "There is no event with this id.",
                "Old ones are removed by the retention."},
    Explanation{"not-found", kind_problem, "There is nothing at this path, or no such thing.",
                "Hint says how to list what there is."},
    Explanation{"not-ready", kind_problem, "The program runs, but cannot work yet, or no more.",
                "GET /readyz?verbose says what is waited for."},
    Explanation{"origin-refused", kind_problem, "The Origin header names another site.",
                "Open the dashboard itself; other sites may not use the API from browsers."},
    Explanation{"starting", kind_problem, "The database is not there yet.",
                "Wait; GET /readyz?verbose says what for. postrider doctor looks at the database."},
    Explanation{"storage-timeout", kind_problem, "The database has not answered in time.",
                "What was asked may have happened. Send it again with the same idempotency key."},
    Explanation{"storage-unavailable", kind_problem, "The database cannot take or answer this now.",
                "Try again after what Retry-After says. postrider doctor looks at the database."},
    Explanation{"target-too-long", kind_problem, "The path and query are longer than they may be.",
                "Send long filters as a body where that is possible."},
    Explanation{"timeout", kind_problem,
                "The request was not answered in time; it may have happened, or may still.",
                "Look whether it has, or send it again if it does no harm twice."},
    Explanation{"too-many-events", kind_problem, "More events than one batch may have.",
                "Send several batches; eventlog.max-batch is the bound."},
    Explanation{
        "unauthorized", kind_problem, "There is no token, or one that is unknown or expired.",
        "Send Authorization: Bearer … with a token, made by: postrider token create -c postrider.toml "
        "--name NAME --role ROLE."},
    Explanation{"unsupported", kind_problem, "This build or this database cannot do it.",
                "Detail says what is missing."},

    // daemon::Cause
    Explanation{"database-away", kind_cause, "The daemon cannot reach its database, or gets no answer.",
                "Look whether it runs: postrider doctor. The daemon goes on by itself when it is back."},
    Explanation{"blocking-transaction", kind_cause,
                "A transaction is open for so long that events behind it cannot be published in order.",
                "The finding names its process: end it, or wait for it."},
    Explanation{
        "database-refuses", kind_cause,
        "The database answers, but what a node has to write fails again and again.",
        "The log says why: mostly a full disk, or a user without the right to write. It goes on by itself "
        "once that has changed."},
    Explanation{"unled-pair", kind_cause, "Nodes lead other pairs, but none has this topic and publisher.",
                "Start the program that has them; when nobody shall publish it any more: postrider topics "
                "forget --topic NAME --publisher NAME."},
    Explanation{"still-pair", kind_cause,
                "A pair is led, has events, and publishes none of them, without an error.",
                "A call to its publisher may hang: see the log of the node that the finding names."},
    Explanation{
        "store-set-back", kind_cause,
        "A pair has published further than the event store reaches: events were lost, for example by a "
        "backup that was restored, and the progress was not.",
        "postrider topics rewind --topic NAME --publisher NAME --to 42, if 42 is the last position that is "
        "as "
        "it was before."},
    Explanation{"no-leader", kind_cause, "No node leads the pairs of the relay.",
                "Start a node with [relay] enabled = true; postrider leaders shows who lives."},
    Explanation{"dead-node", kind_cause, "The node that leads has not been heard of, its lease still runs.",
                "Another node takes over when the lease ends. Look why the node died."},
    Explanation{"failed-pair", kind_cause, "A publisher has refused an event, and its policy is to stop.",
                "Mend the cause that the finding names, then: postrider topics resume --topic NAME "
                "--publisher NAME."},
    Explanation{
        "unhealthy-sink", kind_cause,
        "A receiver was away when it was last tried, its circuit is open, or the sink says so itself.",
        "Look after the receiver; events wait, and it is tried again by itself."},
    Explanation{"failing-pair", kind_cause, "A publisher fails again and again; its events wait.",
                "Look after its receiver; it is tried again by itself, more and more slowly."},
    Explanation{"paused-pair", kind_cause, "Somebody has paused a pair, and its events wait.",
                "postrider topics resume --topic NAME --publisher NAME. The audit says who paused it."},
    Explanation{"outbox-waits", kind_cause,
                "Events of the outbox are due for long, or were tried and not taken.",
                "postrider outbox stuck lists them; see that a node with [outbox] enabled = true runs."},
    Explanation{"queue-waits", kind_cause, "Events of the queue are due for long, and nobody takes them.",
                "postrider queue stuck lists them; see that the program with their handlers runs."},

    // Exit codes
    Explanation{"0", kind_exit, "All went well. Of check: OK.", "Nothing is to be done."},
    Explanation{
        "1", kind_exit,
        "It failed, and the message says why; doctor and verify have found something. Of check: WARNING.",
        "Read the message on standard error; each finding says what mends it."},
    Explanation{"2", kind_exit, "The command line was wrong; nothing was done. Of check: CRITICAL.",
                "postrider COMMAND --help lists what it takes."},
    Explanation{
        "3", kind_exit,
        "serve and eventlog ended without knowing what became of everything, because the database did not "
        "answer within the drain timeout. Of check: UNKNOWN, the database does not answer.",
        "Nobody was told that what is unknown is stored; clients send it again. Look at the database."},
};

}  // namespace

std::span<const Explanation> explanations() noexcept {
  return all;
}

}  // namespace postrider::cli
