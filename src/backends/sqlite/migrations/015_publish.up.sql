-- Publishing from any language, in the caller's own transaction: INSERT INTO {schema}_publish (event_type, payload) VALUES (...).
-- The row is what OutboxStore::insert writes for an event without a place in a hot queue: free, so that any poller may
-- take it. What EventBuilder refuses is refused here, too, but for JSON nested deeper than 256 levels: that becomes a dead
-- letter. Nothing can be read from the view.
CREATE VIEW {schema}_publish (event_type, payload, aggregate_type, aggregate_id, tenant_id, ordering_key, headers,
                              deliver_at, event_id, occurred_at) AS
  SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE 0;
CREATE TRIGGER {schema}_publish_insert INSTEAD OF INSERT ON {schema}_publish
BEGIN
  SELECT CASE
    WHEN coalesce(length(new.event_type), 0) = 0 THEN RAISE(ABORT, 'event refused: type: it is empty')
    WHEN length(new.event_type) > 128 THEN RAISE(ABORT, 'event refused: type: it has more than 128 characters')
    WHEN length(new.aggregate_type) > 64 THEN RAISE(ABORT, 'event refused: aggregate type: it has more than 64 characters')
    WHEN length(new.aggregate_id) > 128 THEN RAISE(ABORT, 'event refused: aggregate id: it has more than 128 characters')
    WHEN length(new.tenant_id) > 64 THEN RAISE(ABORT, 'event refused: tenant id: it has more than 64 characters')
    WHEN length(new.ordering_key) > 200 THEN RAISE(ABORT, 'event refused: ordering key: it has more than 200 characters')
    WHEN instr(new.event_type || coalesce(new.aggregate_type, '') || coalesce(new.aggregate_id, '')
               || coalesce(new.tenant_id, '') || coalesce(new.ordering_key, ''), char(0)) > 0
      THEN RAISE(ABORT, 'event refused: text: it has a NUL character')
    WHEN length(new.event_id) NOT BETWEEN 1 AND 36 OR new.event_id GLOB '*[^!-~]*' OR instr(new.event_id, char(0)) > 0
      THEN RAISE(ABORT, 'event refused: id: it is not 1 to 36 printable ASCII characters without spaces')
    WHEN new.deliver_at IS NOT NULL AND (typeof(new.deliver_at) <> 'integer'
         OR new.deliver_at NOT BETWEEN -30610224000000000 AND 253402214400000000)
      THEN RAISE(ABORT, 'event refused: deliver_at: it is not microseconds since 1970, of the years 1000 to 9999')
    WHEN new.occurred_at IS NOT NULL AND (typeof(new.occurred_at) <> 'integer'
         OR new.occurred_at NOT BETWEEN -30610224000000000 AND 253402214400000000)
      THEN RAISE(ABORT, 'event refused: occurred_at: it is not microseconds since 1970, of the years 1000 to 9999')
    WHEN new.payload IS NULL THEN RAISE(ABORT, 'event refused: payload: it is NULL')
    WHEN length(CAST(new.payload AS BLOB)) > 1048576
      THEN RAISE(ABORT, 'event refused: payload: it has more than 1048576 bytes')
    WHEN typeof(new.payload) = 'blob' OR NOT json_valid(new.payload)
      THEN RAISE(ABORT, 'event refused: payload: it is not valid JSON')
    WHEN length(new.headers) > 0 AND NOT (json_valid(new.headers) AND typeof(new.headers) <> 'blob')
      THEN RAISE(ABORT, 'event refused: headers: they must be one JSON object of strings')
    END;
  -- Apart, because it reads what the statement above has found to be JSON.
  SELECT CASE
    WHEN json_type(new.headers) <> 'object' THEN RAISE(ABORT, 'event refused: headers: they must be one JSON object of strings')
    WHEN (SELECT count(*) FROM json_each(new.headers)) > 64
      THEN RAISE(ABORT, 'event refused: headers: there are more than 64')
    WHEN EXISTS (SELECT 1 FROM json_each(new.headers) WHERE type <> 'text')
      THEN RAISE(ABORT, 'event refused: headers: a value is no string')
    WHEN EXISTS (SELECT 1 FROM json_each(new.headers) WHERE length(key) NOT BETWEEN 1 AND 128)
      THEN RAISE(ABORT, 'event refused: headers: a name has not 1 to 128 characters')
    WHEN EXISTS (SELECT 1 FROM json_each(new.headers) WHERE length(CAST(value AS BLOB)) > 4096)
      THEN RAISE(ABORT, 'event refused: headers: a value has more than 4096 bytes')
    END
  WHERE length(new.headers) > 0;
  INSERT INTO {schema}_outbox_event (event_id, event_type, payload, aggregate_type, aggregate_id, tenant_id, ordering_key,
                                     headers, available_at, created_at, occurred_at)
  -- A new ULID: 48 bits of milliseconds, 80 of chance.
  SELECT coalesce(new.event_id,
           substr(letters, 1 + ((moment / 1000 >> 45) & 31), 1) || substr(letters, 1 + ((moment / 1000 >> 40) & 31), 1) || substr(letters, 1 + ((moment / 1000 >> 35) & 31), 1)
           || substr(letters, 1 + ((moment / 1000 >> 30) & 31), 1) || substr(letters, 1 + ((moment / 1000 >> 25) & 31), 1) || substr(letters, 1 + ((moment / 1000 >> 20) & 31), 1)
           || substr(letters, 1 + ((moment / 1000 >> 15) & 31), 1) || substr(letters, 1 + ((moment / 1000 >> 10) & 31), 1) || substr(letters, 1 + ((moment / 1000 >> 5) & 31), 1)
           || substr(letters, 1 + ((moment / 1000 >> 0) & 31), 1) || substr(letters, 1 + (random() & 31), 1) || substr(letters, 1 + (random() & 31), 1)
           || substr(letters, 1 + (random() & 31), 1) || substr(letters, 1 + (random() & 31), 1) || substr(letters, 1 + (random() & 31), 1)
           || substr(letters, 1 + (random() & 31), 1) || substr(letters, 1 + (random() & 31), 1) || substr(letters, 1 + (random() & 31), 1)
           || substr(letters, 1 + (random() & 31), 1) || substr(letters, 1 + (random() & 31), 1) || substr(letters, 1 + (random() & 31), 1)
           || substr(letters, 1 + (random() & 31), 1) || substr(letters, 1 + (random() & 31), 1) || substr(letters, 1 + (random() & 31), 1)
           || substr(letters, 1 + (random() & 31), 1) || substr(letters, 1 + (random() & 31), 1)), new.event_type, new.payload, nullif(new.aggregate_type, ''),
         nullif(new.aggregate_id, ''), nullif(new.tenant_id, ''), nullif(new.ordering_key, ''),
         CASE WHEN length(new.headers) > 0 AND new.headers <> '{}' THEN new.headers END,
         coalesce(new.deliver_at, moment), moment, coalesce(new.occurred_at, moment)
  FROM (SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS moment,
               '0123456789ABCDEFGHJKMNPQRSTVWXYZ' AS letters);
END;
