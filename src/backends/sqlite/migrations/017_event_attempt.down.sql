DROP TRIGGER {schema}_event_log_removed;
DROP TABLE {schema}_event_attempt;
