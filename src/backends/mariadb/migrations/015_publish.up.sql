-- Publishing from any language, in the caller's own transaction: CALL {schema}_publish('OrderPlaced', '{"id":1}'), then the
-- event's id is in @postrider_event_id. The row is what OutboxStore::insert writes for an event without a place in a hot
-- queue: free, so that any poller may take it. What EventBuilder refuses is refused here, too.
--
-- Procedures, not functions: with a binary log, creating a function needs more rights. Arguments are LONGTEXT because a
-- session that is not strict cuts them to shorter types without a word. Texts are measured, not compared with '': most
-- collations ignore blanks at the end.
DROP PROCEDURE IF EXISTS {schema}_publish_event;
CREATE PROCEDURE {schema}_publish_event(
  INOUT event_id LONGTEXT CHARACTER SET utf8mb4,
  IN event_type LONGTEXT CHARACTER SET utf8mb4,
  IN payload LONGTEXT CHARACTER SET utf8mb4,
  IN aggregate_type LONGTEXT CHARACTER SET utf8mb4,
  IN aggregate_id LONGTEXT CHARACTER SET utf8mb4,
  IN tenant_id LONGTEXT CHARACTER SET utf8mb4,
  IN ordering_key LONGTEXT CHARACTER SET utf8mb4,
  IN headers LONGTEXT CHARACTER SET utf8mb4,
  IN deliver_at DATETIME(6),
  IN occurred_at DATETIME(6)
) SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
  DECLARE wrong TEXT CHARACTER SET utf8mb4 DEFAULT NULL;
  DECLARE header_names LONGTEXT CHARACTER SET utf8mb4;
  DECLARE header_values LONGTEXT CHARACTER SET utf8mb4;
  DECLARE header_name LONGTEXT CHARACTER SET utf8mb4;
  DECLARE header_value LONGTEXT CHARACTER SET utf8mb4;
  DECLARE place INT DEFAULT 0;
  DECLARE millis BIGINT;
  DECLARE chance CHAR(40) CHARACTER SET ascii;
  DECLARE moment DATETIME(6) DEFAULT UTC_TIMESTAMP(6);

  IF COALESCE(CHAR_LENGTH(event_type), 0) = 0 THEN
    SET wrong = 'type: it is empty';
  ELSEIF CHAR_LENGTH(event_type) > 128 THEN
    SET wrong = CONCAT('type: it has ', CHAR_LENGTH(event_type), ' characters, at most 128 are allowed');
  ELSEIF CHAR_LENGTH(aggregate_type) > 64 THEN
    SET wrong = CONCAT('aggregate type: it has ', CHAR_LENGTH(aggregate_type), ' characters, at most 64 are allowed');
  ELSEIF CHAR_LENGTH(aggregate_id) > 128 THEN
    SET wrong = CONCAT('aggregate id: it has ', CHAR_LENGTH(aggregate_id), ' characters, at most 128 are allowed');
  ELSEIF CHAR_LENGTH(tenant_id) > 64 THEN
    SET wrong = CONCAT('tenant id: it has ', CHAR_LENGTH(tenant_id), ' characters, at most 64 are allowed');
  ELSEIF CHAR_LENGTH(ordering_key) > 200 THEN
    SET wrong = CONCAT('ordering key: it has ', CHAR_LENGTH(ordering_key), ' characters, at most 200 are allowed');
  ELSEIF INSTR(CONCAT_WS('', event_type, aggregate_type, aggregate_id, tenant_id, ordering_key), CHAR(0)) > 0 THEN
    SET wrong = 'text: it has a NUL character';
  ELSEIF event_id IS NOT NULL AND NOT event_id REGEXP '^[!-~]{1,36}$' THEN
    SET wrong = 'id: it is not 1 to 36 printable ASCII characters without spaces';
  ELSEIF NOT COALESCE(deliver_at, moment) BETWEEN '1000-01-01' AND '9999-12-31' THEN
    SET wrong = 'deliver_at: it is not between the years 1000 and 9999';
  ELSEIF NOT COALESCE(occurred_at, moment) BETWEEN '1000-01-01' AND '9999-12-31' THEN
    SET wrong = 'occurred_at: it is not between the years 1000 and 9999';
  ELSEIF payload IS NULL THEN
    SET wrong = 'payload: it is NULL';
  ELSEIF LENGTH(payload) > 1048576 THEN
    SET wrong = CONCAT('payload: it has ', LENGTH(payload), ' bytes, at most 1048576 are allowed');
  ELSEIF NOT COALESCE(JSON_VALID(payload), 0) THEN
    SET wrong = 'payload: it is not valid JSON, or nested deeper than 31 levels, which MariaDB cannot read';
  ELSEIF CHAR_LENGTH(headers) > 0 THEN
    IF NOT COALESCE(JSON_VALID(headers), 0) OR JSON_TYPE(headers) <> 'OBJECT' THEN
      SET wrong = 'headers: they must be one JSON object of strings, like {"trace":"abc"}';
    ELSEIF JSON_LENGTH(headers) > 64 THEN
      SET wrong = CONCAT('headers: there are ', JSON_LENGTH(headers), ', at most 64 are allowed');
    ELSEIF JSON_LENGTH(headers) = 0 THEN
      SET headers = NULL;
    ELSE
      SET header_names = JSON_KEYS(headers);
      SET header_values = JSON_EXTRACT(headers, '$.*');
      IF JSON_LENGTH(header_names) <> JSON_LENGTH(header_values) THEN
        SET wrong = 'headers: one of them is there twice';
      END IF;
      WHILE wrong IS NULL AND place < JSON_LENGTH(header_names) DO
        SET header_name = JSON_UNQUOTE(JSON_EXTRACT(header_names, CONCAT('$[', place, ']')));
        SET header_value = JSON_EXTRACT(header_values, CONCAT('$[', place, ']'));
        IF CHAR_LENGTH(header_name) NOT BETWEEN 1 AND 128 THEN
          SET wrong = 'header name: it has not 1 to 128 characters';
        ELSEIF JSON_TYPE(header_value) <> 'STRING' THEN
          SET wrong = CONCAT('header ', header_name, ': its value is no string');
        ELSEIF LENGTH(JSON_UNQUOTE(header_value)) > 4096 THEN
          SET wrong = CONCAT('header ', header_name, ': its value has more than 4096 bytes');
        END IF;
        SET place = place + 1;
      END WHILE;
    END IF;
  END IF;
  IF wrong IS NOT NULL THEN
    SET wrong = LEFT(CONCAT('event refused: ', wrong), 128);
    SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = wrong;
  END IF;

  IF event_id IS NULL THEN
    -- A new ULID: 48 bits of milliseconds, and 80 of the hash of what is unique.
    SET millis = FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000);
    SET chance = SHA1(CONCAT(UUID(), RAND()));
    SET event_id = '';
    SET place = 0;
    WHILE place < 26 DO
      SET event_id = CONCAT(event_id, SUBSTR('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (31 &
        IF(place < 10, millis >> (45 - 5 * place), CONV(SUBSTR(chance, 2 * place - 19, 2), 16, 10))), 1));
      SET place = place + 1;
    END WHILE;
  END IF;
  INSERT INTO {schema}_outbox_event (event_id, event_type, payload, aggregate_type, aggregate_id, tenant_id, ordering_key,
                                     headers, available_at, created_at, occurred_at)
  VALUES (event_id, event_type, payload, IF(CHAR_LENGTH(aggregate_type) > 0, aggregate_type, NULL),
          IF(CHAR_LENGTH(aggregate_id) > 0, aggregate_id, NULL), IF(CHAR_LENGTH(tenant_id) > 0, tenant_id, NULL),
          IF(CHAR_LENGTH(ordering_key) > 0, ordering_key, NULL), IF(CHAR_LENGTH(headers) > 0, headers, NULL),
          COALESCE(deliver_at, moment), moment, COALESCE(occurred_at, moment));
END;
DROP PROCEDURE IF EXISTS {schema}_publish;
CREATE PROCEDURE {schema}_publish(
  IN event_type LONGTEXT CHARACTER SET utf8mb4,
  IN payload LONGTEXT CHARACTER SET utf8mb4
) SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
  SET @postrider_event_id = NULL;
  CALL {schema}_publish_event(@postrider_event_id, event_type, payload, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
END;
