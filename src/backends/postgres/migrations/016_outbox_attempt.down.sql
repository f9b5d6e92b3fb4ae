DROP TABLE {schema}.outbox_attempt;
