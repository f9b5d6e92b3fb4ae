DROP TABLE IF EXISTS {schema}_event_attempt;
