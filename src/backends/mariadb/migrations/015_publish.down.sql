DROP PROCEDURE IF EXISTS {schema}_publish;
DROP PROCEDURE IF EXISTS {schema}_publish_event;
