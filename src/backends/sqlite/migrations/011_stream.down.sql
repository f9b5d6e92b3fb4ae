DROP TABLE {schema}_event_tags;
DROP TABLE {schema}_events;
