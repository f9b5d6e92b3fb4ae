DROP TABLE {schema}_outbox_dead_letter;
DROP TABLE {schema}_outbox_lease;
DROP TABLE {schema}_outbox_topic_progress;
