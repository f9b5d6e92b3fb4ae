DROP TABLE IF EXISTS {schema}_event_projection_skipped;
DROP TABLE IF EXISTS {schema}_event_projection;
DROP TABLE IF EXISTS {schema}_event_handler_state;
DROP TABLE IF EXISTS {schema}_event_log_head;
DROP TABLE IF EXISTS {schema}_event_log;
DROP TABLE IF EXISTS {schema}_event_queue;
