DROP TRIGGER {schema}_outbox_event_removed;
DROP TABLE {schema}_outbox_attempt;
