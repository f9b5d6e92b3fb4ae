-- Attempts of outbox events that did not simply succeed. `token` is that of the claim that made the attempt: one claim, one line,
-- however often its result is written. No foreign key: its check would cost every claim and every result a little, and nearly no
-- event has a line here.
CREATE TABLE {schema}.outbox_attempt (
  event_id varchar(36) COLLATE "C" NOT NULL,
  token bigint NOT NULL,
  attempt integer NOT NULL,
  at timestamptz NOT NULL,
  owner varchar(64),
  -- 0 RETRY, 1 DEAD
  outcome smallint NOT NULL CHECK (outcome IN (0, 1)),
  error text,
  PRIMARY KEY (event_id, token)
);
