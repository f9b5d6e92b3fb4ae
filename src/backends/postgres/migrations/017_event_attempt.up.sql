-- Attempts of the queue's events that did not simply succeed, of those in the queue and of those in the log. `token` is that of the
-- claim: one claim, one line.
CREATE TABLE {schema}.event_attempt (
  id bigint NOT NULL,
  token bigint NOT NULL,
  attempt integer NOT NULL,
  started_at timestamptz,
  at timestamptz NOT NULL,
  owner varchar(64),
  -- 0 RETRY, 2 FAILED, 3 COMPLETED_WITH_ERRORS, 4 CRASHED
  outcome smallint NOT NULL CHECK (outcome IN (0, 2, 3, 4)),
  error text,
  PRIMARY KEY (id, token)
);
