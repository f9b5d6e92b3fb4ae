DROP TABLE {schema}.event_log_entries;
DROP FUNCTION {schema}.event_log_words(text, text, text);
