DROP TABLE IF EXISTS {schema}_outbox_attempt;
