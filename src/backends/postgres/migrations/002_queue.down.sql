DROP TABLE {schema}.event_projection_skipped;
DROP TABLE {schema}.event_projection;
DROP TABLE {schema}.event_handler_state;
DROP TABLE {schema}.event_log;
DROP TABLE {schema}.event_queue;
