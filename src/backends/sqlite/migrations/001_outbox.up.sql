-- The outbox. Times are microseconds since 1970. `due_at` is when somebody may take the row, derived by the database itself so
-- that rows inserted by any program are found; it is NULL once the row is finished, which keeps finished rows out of the indexes.
CREATE TABLE {schema}_outbox_event (
  seq INTEGER PRIMARY KEY,
  -- What an EventId can be: a row that could not be named could not be marked DEAD either.
  event_id TEXT NOT NULL UNIQUE
    CHECK (length(event_id) BETWEEN 1 AND 36 AND event_id NOT GLOB '*[^!-~]*' AND instr(event_id, char(0)) = 0),
  event_type TEXT NOT NULL,
  aggregate_type TEXT,
  aggregate_id TEXT,
  tenant_id TEXT,
  ordering_key TEXT,
  payload TEXT,
  payload_bytes BLOB,
  headers TEXT,
  status INTEGER NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 3),
  attempts INTEGER NOT NULL DEFAULT 0,
  available_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
  created_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
  occurred_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
  done_at INTEGER,
  last_error TEXT,
  owner TEXT,
  lease_until INTEGER,
  token INTEGER NOT NULL DEFAULT 1 CHECK (token BETWEEN 1 AND 1000000000000000000),
  due_at INTEGER GENERATED ALWAYS AS
    (CASE WHEN status IN (0, 2) THEN max(available_at, coalesce(lease_until, available_at)) END) VIRTUAL,
  CHECK ((payload IS NULL) <> (payload_bytes IS NULL))
) STRICT;
CREATE INDEX {schema}_outbox_event_due ON {schema}_outbox_event (due_at)
  WHERE due_at IS NOT NULL AND ordering_key IS NULL;
CREATE INDEX {schema}_outbox_event_due_ordered ON {schema}_outbox_event (due_at)
  WHERE due_at IS NOT NULL AND ordering_key IS NOT NULL;
CREATE INDEX {schema}_outbox_event_key ON {schema}_outbox_event (ordering_key, seq)
  WHERE due_at IS NOT NULL AND ordering_key IS NOT NULL;
CREATE INDEX {schema}_outbox_event_done ON {schema}_outbox_event (done_at) WHERE status = 1;
CREATE INDEX {schema}_outbox_event_dead ON {schema}_outbox_event (done_at, event_id) WHERE status = 3;
