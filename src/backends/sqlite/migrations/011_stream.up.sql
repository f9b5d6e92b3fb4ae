-- The event store. Times are microseconds since 1970. `position` is given in commit order, which here is simply the order of
-- writing: there is one writer. The last position is read from the table itself, so never delete the newest events.
CREATE TABLE {schema}_events (
  position INTEGER PRIMARY KEY CHECK (position > 0),
  event_id TEXT NOT NULL
    CHECK (length(event_id) BETWEEN 1 AND 36 AND event_id NOT GLOB '*[^!-~]*' AND instr(event_id, char(0)) = 0),
  type TEXT NOT NULL,
  -- A JSON array of "key=value".
  tags TEXT NOT NULL,
  metadata TEXT,
  correlation_id TEXT,
  causation_id TEXT,
  -- The writer's clock, and ours.
  occurred_at INTEGER NOT NULL,
  stored_at INTEGER NOT NULL,
  -- Bytes of data, metadata and tags together.
  size INTEGER NOT NULL,
  data TEXT,
  data_bytes BLOB,
  CHECK ((data IS NULL) <> (data_bytes IS NULL))
) STRICT;
-- What events are found by: hashes of the type, of each tag, and of the type with each tag (see storage/stream_keys.hpp). Hits are
-- verified against the event.
CREATE TABLE {schema}_event_tags (
  hash INTEGER NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (hash, position)
) STRICT, WITHOUT ROWID;
