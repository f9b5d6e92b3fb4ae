DROP TABLE {schema}.event_attempt;
