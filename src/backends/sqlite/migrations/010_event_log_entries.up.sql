-- Entries of the Event Log API, as loggers send them. Times are microseconds since 1970. Not to be mixed up with event_log, which
-- is where the queue's finished events go.
CREATE TABLE {schema}_event_log_entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  application_id TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  process_name TEXT NOT NULL,
  process_status TEXT NOT NULL,
  step TEXT,
  details TEXT,
  target_system TEXT,
  originating_system TEXT,
  user_id TEXT,
  -- The sender's clock, and ours.
  occurred_at INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  -- Unique within an application: a repeat finds the first one.
  idempotency_key TEXT,
  -- Members that we do not know, as one JSON object.
  extras TEXT
) STRICT;
-- Each ends in the id (the rowid), as the order of pages does.
CREATE INDEX {schema}_event_log_entries_time ON {schema}_event_log_entries (occurred_at);
CREATE INDEX {schema}_event_log_entries_correlation ON {schema}_event_log_entries (correlation_id, occurred_at);
CREATE INDEX {schema}_event_log_entries_application ON {schema}_event_log_entries (application_id, occurred_at);
CREATE UNIQUE INDEX {schema}_event_log_entries_key ON {schema}_event_log_entries (application_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;

-- Words of the entries. Keeps no second copy of the text, and no lengths, which only ranking would need. Whoever inserts entries
-- adds their words too, in one statement for all of them: a trigger would make FTS5 write a segment for each row, which takes
-- three times as long as everything else together.
CREATE VIRTUAL TABLE {schema}_event_log_words USING fts5(process_name, step, details,
  content='{schema}_event_log_entries', content_rowid='id', columnsize=0, tokenize='unicode61 remove_diacritics 0');
CREATE TRIGGER {schema}_event_log_entries_removed AFTER DELETE ON {schema}_event_log_entries BEGIN
  INSERT INTO {schema}_event_log_words ({schema}_event_log_words, rowid, process_name, step, details)
  VALUES ('delete', old.id, old.process_name, old.step, old.details); END;
CREATE TRIGGER {schema}_event_log_entries_changed AFTER UPDATE OF process_name, step, details ON {schema}_event_log_entries BEGIN
  INSERT INTO {schema}_event_log_words ({schema}_event_log_words, rowid, process_name, step, details)
  VALUES ('delete', old.id, old.process_name, old.step, old.details); INSERT INTO {schema}_event_log_words
  (rowid, process_name, step, details) VALUES (new.id, new.process_name, new.step, new.details); END;
