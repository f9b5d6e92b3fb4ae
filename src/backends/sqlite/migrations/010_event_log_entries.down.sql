DROP TABLE {schema}_event_log_words;
DROP TABLE {schema}_event_log_entries;
