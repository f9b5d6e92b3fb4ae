-- The event store. `position` is given in commit order: whoever appends holds an advisory lock from before he takes positions until
-- the commit. The last position is read from the table itself: a row that is updated with every append would leave behind dead
-- versions that every reader walks over for as long as any old transaction is open. So never delete the newest events.
CREATE TABLE {schema}.events (
  position bigint PRIMARY KEY CHECK (position > 0),
  event_id varchar(36) COLLATE "C" NOT NULL CHECK (event_id <> '' AND event_id !~ '[^!-~]'),
  type varchar(128) COLLATE "C" NOT NULL,
  -- A JSON array of "key=value".
  tags text COLLATE "C" NOT NULL,
  data json,
  data_bytes bytea,
  metadata json,
  correlation_id varchar(128) COLLATE "C",
  causation_id varchar(128) COLLATE "C",
  -- The writer's clock, and ours.
  occurred_at timestamptz NOT NULL CHECK (isfinite(occurred_at)),
  stored_at timestamptz NOT NULL,
  -- Bytes of data, metadata and tags together: how much a page holds is known before anything long is read.
  size integer NOT NULL,
  CHECK ((data IS NULL) <> (data_bytes IS NULL))
);
-- What events are found by: hashes of the type, of each tag, and of the type with each tag (see storage/stream_keys.hpp). Hits are
-- verified against the event.
CREATE TABLE {schema}.event_tags (
  hash bigint NOT NULL,
  position bigint NOT NULL,
  PRIMARY KEY (hash, position)
);
