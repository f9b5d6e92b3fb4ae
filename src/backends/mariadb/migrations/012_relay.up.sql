-- How far each pair of topic and publisher is. Written by the pair's leader alone, who knows its epoch.
CREATE TABLE IF NOT EXISTS {schema}_outbox_topic_progress (
  topic VARCHAR(128) NOT NULL,
  publisher VARCHAR(128) NOT NULL,
  last_position BIGINT NOT NULL DEFAULT 0,
  status VARCHAR(10) NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'PAUSED', 'FAILED')),
  error_count INT NOT NULL DEFAULT 0,
  last_error TEXT,
  last_published_at DATETIME(6),
  leader_instance VARCHAR(64),
  leader_since DATETIME(6),
  epoch BIGINT NOT NULL DEFAULT 0,
  created_at DATETIME(6) NOT NULL,
  updated_at DATETIME(6) NOT NULL,
  PRIMARY KEY (topic, publisher)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
-- 'leader' for the one that leads all pairs, 'node/...' for each node that leads a share.
CREATE TABLE IF NOT EXISTS {schema}_outbox_lease (
  name VARCHAR(80) NOT NULL PRIMARY KEY,
  owner VARCHAR(64),
  epoch BIGINT NOT NULL DEFAULT 1,
  since DATETIME(6) NOT NULL,
  heartbeat_at DATETIME(6) NOT NULL,
  lease_until DATETIME(6),
  -- the owner holds a lock of its name for as long as it lives
  locked TINYINT NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
-- Events that a publisher did not take, by its poison policy.
CREATE TABLE IF NOT EXISTS {schema}_outbox_dead_letter (
  topic VARCHAR(128) NOT NULL,
  publisher VARCHAR(128) NOT NULL,
  position BIGINT NOT NULL,
  error TEXT,
  failed_at DATETIME(6) NOT NULL,
  PRIMARY KEY (topic, publisher, position)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
