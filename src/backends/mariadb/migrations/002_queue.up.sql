-- The queue. Times are UTC. Nothing that a claim changes is part of an index. InnoDB has no partial indexes; instead the derived
-- columns are NULL in rows that an index is not about. Every statement can be repeated, because DDL commits by itself.
CREATE TABLE IF NOT EXISTS {schema}_event_queue (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  event_id VARCHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  event_type VARCHAR(128) NOT NULL,
  aggregate_type VARCHAR(64),
  aggregate_id VARCHAR(128),
  tenant_id VARCHAR(64),
  ordering_key VARCHAR(200),
  dedupe_key VARCHAR(200),
  payload MEDIUMTEXT,
  payload_bytes MEDIUMBLOB,
  headers MEDIUMTEXT,
  -- 0 PENDING, 1 PROCESSING
  status TINYINT NOT NULL DEFAULT 0,
  priority TINYINT NOT NULL DEFAULT 0,
  attempts INT NOT NULL DEFAULT 0,
  crashes INT NOT NULL DEFAULT 0,
  token BIGINT NOT NULL DEFAULT 0,
  available_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  updated_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  occurred_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  processing_started_at DATETIME(6),
  owner VARCHAR(64),
  lease_until DATETIME(6),
  last_error TEXT,
  quarantined_at DATETIME(6),
  -- A claim fills columns that were NULL. InnoDB would have to move records about in a full page for each of them; giving up this
  -- room in the same moment keeps the record as long as it was (measured: a third of the time).
  room VARBINARY(64) DEFAULT '................................................................',
  due_priority TINYINT GENERATED ALWAYS AS
    (CASE WHEN ordering_key IS NULL AND quarantined_at IS NULL THEN priority END) STORED,
  pending_key VARCHAR(200) GENERATED ALWAYS AS (CASE WHEN quarantined_at IS NULL THEN ordering_key END) STORED,
  KEY event_queue_due (due_priority, available_at, id),
  KEY event_queue_key (pending_key, id),
  UNIQUE KEY event_queue_dedupe (dedupe_key),
  KEY event_queue_quarantine (quarantined_at, id),
  CHECK (status IN (0, 1)),
  CHECK (priority BETWEEN 0 AND 9),
  CHECK (token BETWEEN 0 AND 1000000000000000000),
  CHECK (event_id <> '' AND event_id NOT REGEXP '[^!-~]'),
  CHECK (available_at >= '1000-01-01' AND created_at >= '1000-01-01' AND updated_at >= '1000-01-01'
         AND occurred_at >= '1000-01-01'),
  CHECK (lease_until IS NULL OR lease_until >= '1000-01-01'),
  CHECK ((payload IS NULL) <> (payload_bytes IS NULL))
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;

-- Finished events. `seq` is given in commit order (whoever takes numbers locks event_log_head until the commit); it is NULL for
-- a moment in rows that were finalised in a user's own transaction, which must not hold that lock.
CREATE TABLE IF NOT EXISTS {schema}_event_log (
  id BIGINT PRIMARY KEY,
  seq BIGINT,
  -- Of the claim that finalised it: a repeated finalize is known by it.
  token BIGINT NOT NULL,
  event_id VARCHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  event_type VARCHAR(128) NOT NULL,
  aggregate_type VARCHAR(64),
  aggregate_id VARCHAR(128),
  tenant_id VARCHAR(64),
  ordering_key VARCHAR(200),
  payload MEDIUMTEXT,
  payload_bytes MEDIUMBLOB,
  headers MEDIUMTEXT,
  -- 2 COMPLETED, 3 COMPLETED_WITH_ERRORS, 4 FAILED
  status TINYINT NOT NULL,
  priority TINYINT NOT NULL,
  attempts INT NOT NULL,
  crashes INT NOT NULL,
  created_at DATETIME(6) NOT NULL,
  occurred_at DATETIME(6) NOT NULL,
  processing_started_at DATETIME(6),
  finalized_at DATETIME(6) NOT NULL,
  -- [{"handler": id, "result": 0 success | 1 transient | 2 unrecoverable, "failed": n, "error": text}, …]; NULL: none
  results MEDIUMTEXT,
  UNIQUE KEY event_log_seq (seq),
  CHECK (status BETWEEN 2 AND 4)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
-- The last number that was given; whoever takes numbers holds this row until the commit.
CREATE TABLE IF NOT EXISTS {schema}_event_log_head (
  one TINYINT NOT NULL PRIMARY KEY DEFAULT 1,
  last BIGINT NOT NULL,
  CHECK (one = 1)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
INSERT IGNORE INTO {schema}_event_log_head (one, last) VALUES (1, 0);

-- What handlers said about events that are not finished, and the sub tasks that they have done ("handler#task").
CREATE TABLE IF NOT EXISTS {schema}_event_handler_state (
  id BIGINT NOT NULL,
  handler VARCHAR(300) NOT NULL,
  -- 0 success, 1 transient error, 2 unrecoverable error
  result TINYINT NOT NULL,
  failed INT NOT NULL DEFAULT 0,
  error TEXT,
  updated_at DATETIME(6) NOT NULL,
  PRIMARY KEY (id, handler)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;

-- One row per projection and version. `epoch` grows whenever another node takes it over, so that the one before cannot write.
CREATE TABLE IF NOT EXISTS {schema}_event_projection (
  name VARCHAR(128) NOT NULL,
  version INT NOT NULL,
  position BIGINT NOT NULL DEFAULT 0,
  -- 0 ACTIVE, 1 PAUSED, 2 FAILED (stopped by the poison policy)
  status TINYINT NOT NULL DEFAULT 0,
  live TINYINT NOT NULL DEFAULT 0,
  epoch BIGINT NOT NULL DEFAULT 0,
  owner VARCHAR(64),
  lease_until DATETIME(6),
  failures INT NOT NULL DEFAULT 0,
  last_error TEXT,
  created_at DATETIME(6) NOT NULL,
  updated_at DATETIME(6) NOT NULL,
  PRIMARY KEY (name, version)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
-- Entries that a projection could not digest and was told to skip.
CREATE TABLE IF NOT EXISTS {schema}_event_projection_skipped (
  name VARCHAR(128) NOT NULL,
  version INT NOT NULL,
  seq BIGINT NOT NULL,
  error TEXT,
  skipped_at DATETIME(6) NOT NULL,
  PRIMARY KEY (name, version, seq)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
