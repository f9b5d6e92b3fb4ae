DROP TABLE IF EXISTS {schema}_event_store_lock;
DROP TABLE IF EXISTS {schema}_event_tags;
DROP TABLE IF EXISTS {schema}_events;
