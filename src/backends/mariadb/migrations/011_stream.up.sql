-- The event store. Times are UTC. `position` is given in commit order: whoever appends holds the row of event_store_lock from before
-- he takes positions until the commit. The last position is read from the table itself, so never delete the newest events. Every
-- statement can be repeated, because DDL commits by itself.
CREATE TABLE IF NOT EXISTS {schema}_events (
  position BIGINT NOT NULL PRIMARY KEY,
  event_id VARCHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  type VARCHAR(128) NOT NULL,
  -- A JSON array of "key=value".
  tags MEDIUMTEXT NOT NULL,
  data MEDIUMTEXT,
  data_bytes MEDIUMBLOB,
  metadata MEDIUMTEXT,
  correlation_id VARCHAR(128),
  causation_id VARCHAR(128),
  -- The writer's clock, and ours.
  occurred_at DATETIME(6) NOT NULL,
  stored_at DATETIME(6) NOT NULL,
  -- Bytes of data, metadata and tags together: how much a page holds is known before anything long is read.
  size INT NOT NULL,
  CHECK (position > 0),
  CHECK (event_id <> '' AND event_id NOT REGEXP '[^!-~]'),
  CHECK (occurred_at >= '1000-01-01' AND stored_at >= '1000-01-01'),
  CHECK ((data IS NULL) <> (data_bytes IS NULL))
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
-- What events are found by: hashes of the type, of each tag, and of the type with each tag (see storage/stream_keys.hpp). Hits are
-- verified against the event.
CREATE TABLE IF NOT EXISTS {schema}_event_tags (
  hash BIGINT NOT NULL,
  position BIGINT NOT NULL,
  PRIMARY KEY (hash, position)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
CREATE TABLE IF NOT EXISTS {schema}_event_store_lock (
  one TINYINT NOT NULL PRIMARY KEY DEFAULT 1,
  CHECK (one = 1)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
INSERT IGNORE INTO {schema}_event_store_lock (one) VALUES (1);
