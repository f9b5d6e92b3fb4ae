-- Attempts of the queue's events that did not simply succeed, of those in the queue and of those in the log. `token` is that of the
-- claim: one claim, one line. Times are microseconds since 1970.
CREATE TABLE {schema}_event_attempt (
  id INTEGER NOT NULL,
  token INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  started_at INTEGER,
  at INTEGER NOT NULL,
  owner TEXT,
  -- 0 RETRY, 2 FAILED, 3 COMPLETED_WITH_ERRORS, 4 CRASHED
  outcome INTEGER NOT NULL CHECK (outcome IN (0, 2, 3, 4)),
  error TEXT,
  PRIMARY KEY (id, token)
) STRICT;
-- Whoever removes an entry of the log removes its attempts.
CREATE TRIGGER {schema}_event_log_removed AFTER DELETE ON {schema}_event_log
BEGIN
  DELETE FROM {schema}_event_attempt WHERE id = old.id;
END;
