DROP TABLE IF EXISTS {schema}_outbox_dead_letter;
DROP TABLE IF EXISTS {schema}_outbox_lease;
DROP TABLE IF EXISTS {schema}_outbox_topic_progress;
