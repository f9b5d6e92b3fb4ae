-- What people changed through the management API: who, what, when. Added to, never changed.
CREATE TABLE {schema}.audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  who varchar(64) NOT NULL,
  what text NOT NULL
);
CREATE INDEX audit_who ON {schema}.audit (who, id);
