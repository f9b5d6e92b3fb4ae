-- Publishing from any language, in the caller's own transaction: SELECT {schema}.publish('OrderPlaced', '{"id":1}').
-- The row is what OutboxStore::insert writes for an event without a place in a hot queue: free, so that any poller may
-- take it. What EventBuilder refuses is refused here, too, because such a row could not be delivered. No NOTIFY: inside
-- callers' transactions it would make all commits of the server queue up behind each other.
--
-- The path is fixed so that nobody's own functions or operators of the same names are called.

-- A new ULID: 48 bits of milliseconds, 80 of chance.
CREATE FUNCTION {schema}.new_event_id() RETURNS text
LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substring(bits FROM place FOR 5)::bit(5)::integer + 1, 1),
                    '' ORDER BY place)
  FROM (SELECT B'00' || floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint::bit(48)
               -- Without the digits of a UUID that say its version and variant.
               || ('x' || substr(uuid, 1, 8) || substr(uuid, 21, 12))::bit(80) AS bits
        FROM (SELECT replace(gen_random_uuid()::text, '-', '') AS uuid) AS chance) AS ulid,
       generate_series(1, 126, 5) AS place
$$;

-- Whether arrays and objects are nested deeper than readers of events take. Only asked when there are enough brackets.
CREATE FUNCTION {schema}.nested_too_deep(json_text text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- Brackets alone, without those inside of strings.
  rest text := regexp_replace(regexp_replace(json_text, '"(?:[^"\\]|\\.)*"', '', 'g'), '[^][{}]+', '', 'g');
BEGIN
  FOR level IN 1..256 LOOP
    IF rest = '' THEN RETURN false; END IF;
    rest := regexp_replace(rest, '\[\]|\{\}', '', 'g');  -- the innermost
  END LOOP;
  RETURN rest <> '';
END
$$;

-- As stored headers are written: sorted, without blanks; NULL for none.
CREATE FUNCTION {schema}.checked_headers(headers jsonb) RETURNS json
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  header record;
  result text;
  total integer := 0;
BEGIN
  IF headers IS NULL THEN RETURN NULL; END IF;
  IF jsonb_typeof(headers) <> 'object' THEN
    RAISE EXCEPTION 'event refused: headers: this is no object' USING ERRCODE = 'invalid_parameter_value',
      HINT = 'they must be one JSON object of strings, like {"trace":"abc"}';
  END IF;
  FOR header IN SELECT e.key AS name, jsonb_typeof(e.value) AS kind, e.value #>> '{}' AS text
                FROM jsonb_each(headers) AS e ORDER BY e.key COLLATE "C" LOOP
    total := total + 1;
    IF header.kind <> 'string' THEN
      RAISE EXCEPTION 'event refused: header "%": its value is no string', left(header.name, 128)
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF header.name = '' THEN
      RAISE EXCEPTION 'event refused: header name: it is empty' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF char_length(header.name) > 128 THEN
      RAISE EXCEPTION 'event refused: header name "%": it has % characters, at most 128 are allowed',
        left(header.name, 128), char_length(header.name) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF octet_length(convert_to(header.text, 'UTF8')) > 4096 THEN
      RAISE EXCEPTION 'event refused: header "%": its value has % bytes, at most 4096 are allowed', header.name,
        octet_length(convert_to(header.text, 'UTF8'))
        USING ERRCODE = 'invalid_parameter_value', HINT = 'put it into the payload';
    END IF;
    result := coalesce(result || ',', '{') || to_json(header.name)::text || ':' || to_json(header.text)::text;
  END LOOP;
  IF total > 64 THEN
    RAISE EXCEPTION 'event refused: headers: there are %, at most 64 are allowed', total
      USING ERRCODE = 'invalid_parameter_value', HINT = 'put them into the payload';
  END IF;
  RETURN (result || '}')::json;
END
$$;

CREATE FUNCTION {schema}.publish(
  event_type text,
  payload text,
  aggregate_type text DEFAULT NULL,
  aggregate_id text DEFAULT NULL,
  tenant_id text DEFAULT NULL,
  ordering_key text DEFAULT NULL,
  headers jsonb DEFAULT NULL,
  deliver_at timestamptz DEFAULT NULL,
  event_id text DEFAULT NULL,
  occurred_at timestamptz DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  field record;
  stored json;
BEGIN
  IF coalesce(event_type, '') = '' THEN
    RAISE EXCEPTION 'event refused: type: it is empty' USING ERRCODE = 'invalid_parameter_value',
      HINT = 'name what happened, for example ''UserCreated''';
  END IF;
  IF char_length(event_type) > 128 OR char_length(aggregate_type) > 64 OR char_length(aggregate_id) > 128
     OR char_length(tenant_id) > 64 OR char_length(ordering_key) > 200 THEN
    SELECT f.name, char_length(f.value) AS chars, f.most INTO field
    FROM (VALUES (1, 'type', event_type, 128), (2, 'aggregate type', aggregate_type, 64),
                 (3, 'aggregate id', aggregate_id, 128), (4, 'tenant id', tenant_id, 64),
                 (5, 'ordering key', ordering_key, 200)) AS f(place, name, value, most)
    WHERE char_length(f.value) > f.most ORDER BY f.place LIMIT 1;
    RAISE EXCEPTION 'event refused: %: it has % characters, at most % are allowed', field.name, field.chars, field.most
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF event_id IS NULL THEN
    event_id := {schema}.new_event_id();
  ELSIF event_id !~ '^[!-~]{1,36}$' COLLATE "C" THEN
    RAISE EXCEPTION 'event refused: id: it is not 1 to 36 printable ASCII characters without spaces'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF NOT (coalesce(deliver_at, now()) BETWEEN '1000-01-01 00:00+00' AND '9999-12-31 00:00+00') THEN
    RAISE EXCEPTION 'event refused: deliver_at: it is not between the years 1000 and 9999'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF NOT (coalesce(occurred_at, now()) BETWEEN '1000-01-01 00:00+00' AND '9999-12-31 00:00+00') THEN
    RAISE EXCEPTION 'event refused: occurred_at: it is not between the years 1000 and 9999'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF payload IS NULL THEN
    RAISE EXCEPTION 'event refused: payload: it is NULL' USING ERRCODE = 'invalid_parameter_value',
      HINT = 'give JSON; ''null'' and ''{}'' are';
  END IF;
  IF octet_length(convert_to(payload, 'UTF8')) > 1048576 THEN
    RAISE EXCEPTION 'event refused: payload: it has % bytes, at most 1048576 are allowed',
      octet_length(convert_to(payload, 'UTF8'))
      USING ERRCODE = 'invalid_parameter_value', HINT = 'store it elsewhere and publish where it is';
  END IF;
  stored := payload::json;  -- the server says best what is wrong with it
  IF char_length(payload) - char_length(translate(payload, '[{', '')) > 256 AND {schema}.nested_too_deep(payload) THEN
    RAISE EXCEPTION 'event refused: payload: it is nested deeper than 256 levels'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO {schema}.outbox_event (event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key,
                                     headers, payload, occurred_at, created_at, available_at)
  VALUES (event_id, event_type, nullif(aggregate_type, ''), nullif(aggregate_id, ''), nullif(tenant_id, ''),
          nullif(ordering_key, ''), {schema}.checked_headers(headers), stored,
          coalesce(occurred_at, clock_timestamp()), statement_timestamp(),
          coalesce(deliver_at, statement_timestamp()));
  RETURN event_id;
END
$$;

-- For what a query has made; a quoted text is taken by the one above.
CREATE FUNCTION {schema}.publish(
  event_type text, payload jsonb, aggregate_type text DEFAULT NULL, aggregate_id text DEFAULT NULL,
  tenant_id text DEFAULT NULL, ordering_key text DEFAULT NULL, headers jsonb DEFAULT NULL,
  deliver_at timestamptz DEFAULT NULL, event_id text DEFAULT NULL, occurred_at timestamptz DEFAULT NULL
) RETURNS text
LANGUAGE sql VOLATILE
AS $$ SELECT {schema}.publish($1, $2::text, $3, $4, $5, $6, $7, $8, $9, $10) $$;

CREATE FUNCTION {schema}.publish(
  event_type text, payload json, aggregate_type text DEFAULT NULL, aggregate_id text DEFAULT NULL,
  tenant_id text DEFAULT NULL, ordering_key text DEFAULT NULL, headers jsonb DEFAULT NULL,
  deliver_at timestamptz DEFAULT NULL, event_id text DEFAULT NULL, occurred_at timestamptz DEFAULT NULL
) RETURNS text
LANGUAGE sql VOLATILE
AS $$ SELECT {schema}.publish($1, $2::text, $3, $4, $5, $6, $7, $8, $9, $10) $$;
