DROP FUNCTION {schema}.publish(text, json, text, text, text, text, jsonb, timestamptz, text, timestamptz);
DROP FUNCTION {schema}.publish(text, jsonb, text, text, text, text, jsonb, timestamptz, text, timestamptz);
DROP FUNCTION {schema}.publish(text, text, text, text, text, text, jsonb, timestamptz, text, timestamptz);
DROP FUNCTION {schema}.checked_headers(jsonb);
DROP FUNCTION {schema}.nested_too_deep(text);
DROP FUNCTION {schema}.new_event_id();
