-- How far each pair of topic and publisher is. Written by the pair's leader alone, who knows its epoch.
CREATE TABLE {schema}_outbox_topic_progress (
  topic TEXT NOT NULL,
  publisher TEXT NOT NULL,
  last_position INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'PAUSED', 'FAILED')),
  error_count INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  last_published_at INTEGER,
  leader_instance TEXT,
  leader_since INTEGER,
  epoch INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (topic, publisher)
) STRICT;
-- 'leader' for the one that leads all pairs, 'node/...' for each node that leads a share.
CREATE TABLE {schema}_outbox_lease (
  name TEXT NOT NULL PRIMARY KEY,
  owner TEXT,
  epoch INTEGER NOT NULL DEFAULT 1,
  since INTEGER NOT NULL,
  heartbeat_at INTEGER NOT NULL,
  lease_until INTEGER,
  -- the owner holds a lock of its name for as long as it lives
  locked INTEGER NOT NULL DEFAULT 0
) STRICT;
-- Events that a publisher did not take, by its poison policy.
CREATE TABLE {schema}_outbox_dead_letter (
  topic TEXT NOT NULL,
  publisher TEXT NOT NULL,
  position INTEGER NOT NULL,
  error TEXT,
  failed_at INTEGER NOT NULL,
  PRIMARY KEY (topic, publisher, position)
) STRICT;
