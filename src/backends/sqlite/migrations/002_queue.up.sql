-- The queue. Times are microseconds since 1970. Nothing that a claim changes is part of an index.
CREATE TABLE {schema}_event_queue (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT NOT NULL
    CHECK (length(event_id) BETWEEN 1 AND 36 AND event_id NOT GLOB '*[^!-~]*' AND instr(event_id, char(0)) = 0),
  event_type TEXT NOT NULL,
  aggregate_type TEXT,
  aggregate_id TEXT,
  tenant_id TEXT,
  ordering_key TEXT,
  dedupe_key TEXT,
  payload TEXT,
  payload_bytes BLOB,
  headers TEXT,
  -- 0 PENDING, 1 PROCESSING
  status INTEGER NOT NULL DEFAULT 0 CHECK (status IN (0, 1)),
  priority INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN 0 AND 9),
  attempts INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0,
  token INTEGER NOT NULL DEFAULT 0 CHECK (token BETWEEN 0 AND 1000000000000000000),
  available_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
  created_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
  updated_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
  occurred_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
  processing_started_at INTEGER,
  owner TEXT,
  lease_until INTEGER,
  last_error TEXT,
  quarantined_at INTEGER,
  CHECK ((payload IS NULL) <> (payload_bytes IS NULL))
) STRICT;
CREATE INDEX {schema}_event_queue_due ON {schema}_event_queue (priority, available_at, id)
  WHERE ordering_key IS NULL AND quarantined_at IS NULL;
CREATE INDEX {schema}_event_queue_key ON {schema}_event_queue (ordering_key, id)
  WHERE ordering_key IS NOT NULL AND quarantined_at IS NULL;
CREATE UNIQUE INDEX {schema}_event_queue_dedupe ON {schema}_event_queue (dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX {schema}_event_queue_quarantine ON {schema}_event_queue (quarantined_at, id) WHERE quarantined_at IS NOT NULL;

-- Finished events. `seq` is given in commit order, which here is simply the order of writing: there is one writer.
CREATE TABLE {schema}_event_log (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id INTEGER NOT NULL UNIQUE,
  -- Of the claim that finalised it: a repeated finalize is known by it.
  token INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  aggregate_type TEXT,
  aggregate_id TEXT,
  tenant_id TEXT,
  ordering_key TEXT,
  payload TEXT,
  payload_bytes BLOB,
  headers TEXT,
  -- 2 COMPLETED, 3 COMPLETED_WITH_ERRORS, 4 FAILED
  status INTEGER NOT NULL CHECK (status BETWEEN 2 AND 4),
  priority INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  occurred_at INTEGER NOT NULL,
  processing_started_at INTEGER,
  finalized_at INTEGER NOT NULL,
  -- [{"handler": id, "result": 0 success | 1 transient | 2 unrecoverable, "failed": n, "error": text}, …]; NULL: none
  results TEXT
) STRICT;

-- What handlers said about events that are not finished, and the sub tasks that they have done ("handler#task").
CREATE TABLE {schema}_event_handler_state (
  id INTEGER NOT NULL,
  handler TEXT NOT NULL,
  -- 0 success, 1 transient error, 2 unrecoverable error
  result INTEGER NOT NULL CHECK (result BETWEEN 0 AND 2),
  failed INTEGER NOT NULL DEFAULT 0,
  error TEXT,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (id, handler)
) STRICT;

-- One row per projection and version. `epoch` grows whenever another node takes it over, so that the one before cannot write.
CREATE TABLE {schema}_event_projection (
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  position INTEGER NOT NULL DEFAULT 0,
  -- 0 ACTIVE, 1 PAUSED, 2 FAILED (stopped by the poison policy)
  status INTEGER NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 2),
  live INTEGER NOT NULL DEFAULT 0,
  epoch INTEGER NOT NULL DEFAULT 0,
  owner TEXT,
  lease_until INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (name, version)
) STRICT;
-- Entries that a projection could not digest and was told to skip.
CREATE TABLE {schema}_event_projection_skipped (
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  error TEXT,
  skipped_at INTEGER NOT NULL,
  PRIMARY KEY (name, version, seq)
) STRICT;
