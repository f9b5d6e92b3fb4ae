DROP TABLE {schema}.outbox_dead_letter;
DROP TABLE {schema}.outbox_lease;
DROP TABLE {schema}.outbox_topic_progress;
