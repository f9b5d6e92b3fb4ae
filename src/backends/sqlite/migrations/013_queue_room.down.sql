ALTER TABLE {schema}_event_queue DROP COLUMN room;
