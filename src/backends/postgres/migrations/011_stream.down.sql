DROP TABLE {schema}.event_tags;
DROP TABLE {schema}.events;
