DROP TABLE {schema}_event_projection_skipped;
DROP TABLE {schema}_event_projection;
DROP TABLE {schema}_event_handler_state;
DROP TABLE {schema}_event_log;
DROP TABLE {schema}_event_queue;
