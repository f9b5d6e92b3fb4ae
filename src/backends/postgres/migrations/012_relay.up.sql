-- How far each pair of topic and publisher is. Written by the pair's leader alone, who knows its epoch.
CREATE TABLE {schema}.outbox_topic_progress (
  topic varchar(128) COLLATE "C" NOT NULL,
  publisher varchar(128) COLLATE "C" NOT NULL,
  last_position bigint NOT NULL DEFAULT 0,
  status varchar(10) NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'PAUSED', 'FAILED')),
  error_count integer NOT NULL DEFAULT 0,
  last_error text,
  last_published_at timestamptz,
  leader_instance varchar(64) COLLATE "C",
  leader_since timestamptz,
  epoch bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (topic, publisher)
) WITH (fillfactor = 50);  -- rows that change all the time: new versions stay on their page
-- 'leader' for the one that leads all pairs, 'node/...' for each node that leads a share.
CREATE TABLE {schema}.outbox_lease (
  name varchar(80) COLLATE "C" NOT NULL PRIMARY KEY,
  owner varchar(64) COLLATE "C",
  epoch bigint NOT NULL DEFAULT 1,
  since timestamptz NOT NULL,
  heartbeat_at timestamptz NOT NULL,
  lease_until timestamptz,
  -- the owner holds a lock of its name for as long as it lives
  locked boolean NOT NULL DEFAULT false
);
-- Events that a publisher did not take, by its poison policy.
CREATE TABLE {schema}.outbox_dead_letter (
  topic varchar(128) COLLATE "C" NOT NULL,
  publisher varchar(128) COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  error text,
  failed_at timestamptz NOT NULL,
  PRIMARY KEY (topic, publisher, position)
);
