DROP TABLE {schema}.outbox_event;
