DROP TABLE IF EXISTS {schema}_event_log_entries;
