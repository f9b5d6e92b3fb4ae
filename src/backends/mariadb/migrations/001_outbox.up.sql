-- The outbox. Times are UTC. `due_at` is when somebody may take the row, derived by the database itself so that rows inserted by
-- any program are found. InnoDB has no partial indexes; instead the derived columns are NULL once the row is finished, so that
-- finished rows lie together at the far end of the indexes, where no claim passes.
--
-- `due_lane` (0: without ordering key, 1: with) lets one index serve both kinds of claim. The derived columns are STORED:
-- undo purge of indexes over virtual columns needs the server's SQL layer and has cost others crashes.
-- Everything is one statement, because DDL commits by itself: it is there or it is not.
CREATE TABLE IF NOT EXISTS {schema}_outbox_event (
  seq BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  event_id VARCHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  event_type VARCHAR(128) NOT NULL,
  aggregate_type VARCHAR(64),
  aggregate_id VARCHAR(128),
  tenant_id VARCHAR(64),
  ordering_key VARCHAR(200),
  payload MEDIUMTEXT,
  payload_bytes MEDIUMBLOB,
  headers MEDIUMTEXT,
  status TINYINT NOT NULL DEFAULT 0,
  attempts INT NOT NULL DEFAULT 0,
  available_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  occurred_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  done_at DATETIME(6),
  last_error TEXT,
  owner VARCHAR(64),
  lease_until DATETIME(6),
  token BIGINT NOT NULL DEFAULT 1,
  due_at DATETIME(6) GENERATED ALWAYS AS
    (CASE WHEN status IN (0, 2) THEN GREATEST(available_at, COALESCE(lease_until, available_at)) END) STORED,
  due_lane TINYINT GENERATED ALWAYS AS (CASE WHEN status IN (0, 2) THEN ordering_key IS NOT NULL END) STORED,
  pending_key VARCHAR(200) GENERATED ALWAYS AS (CASE WHEN status IN (0, 2) THEN ordering_key END) STORED,
  UNIQUE KEY outbox_event_id (event_id),
  KEY outbox_event_due (due_lane, due_at),
  KEY outbox_event_key (pending_key, seq),
  KEY outbox_event_finished (status, done_at, event_id),
  CHECK (status BETWEEN 0 AND 3),
  CHECK (event_id <> '' AND event_id NOT REGEXP '[^!-~]'),
  CHECK (token BETWEEN 1 AND 1000000000000000000),
  CHECK (available_at >= '1000-01-01' AND created_at >= '1000-01-01' AND occurred_at >= '1000-01-01'),
  CHECK (lease_until IS NULL OR lease_until >= '1000-01-01'),
  CHECK ((payload IS NULL) <> (payload_bytes IS NULL))
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
