-- Attempts of outbox events that did not simply succeed. `token` is that of the claim that made the attempt: one claim, one line,
-- however often its result is written. Times are microseconds since 1970.
CREATE TABLE {schema}_outbox_attempt (
  event_id TEXT NOT NULL,
  token INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  at INTEGER NOT NULL,
  owner TEXT,
  -- 0 RETRY, 1 DEAD
  outcome INTEGER NOT NULL CHECK (outcome IN (0, 1)),
  error TEXT,
  PRIMARY KEY (event_id, token)
) STRICT;
-- Whoever removes an event removes its attempts.
CREATE TRIGGER {schema}_outbox_event_removed AFTER DELETE ON {schema}_outbox_event
BEGIN
  DELETE FROM {schema}_outbox_attempt WHERE event_id = old.event_id;
END;
