-- What people changed through the management API: who, what, when (microseconds since 1970). Added to, never changed.
CREATE TABLE {schema}_audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  made_at INTEGER NOT NULL,
  who TEXT NOT NULL,
  what TEXT NOT NULL
) STRICT;
CREATE INDEX {schema}_audit_who ON {schema}_audit (who, id);
