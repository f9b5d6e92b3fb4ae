DROP TRIGGER {schema}_publish_insert;
DROP VIEW {schema}_publish;
