DROP TABLE {schema}_outbox_event;
