-- Attempts of outbox events that did not simply succeed. `token` is that of the claim that made the attempt: one claim, one line,
-- however often its result is written. Times are UTC.
CREATE TABLE IF NOT EXISTS {schema}_outbox_attempt (
  event_id VARCHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token BIGINT NOT NULL,
  attempt INT NOT NULL,
  at DATETIME(6) NOT NULL,
  owner VARCHAR(64),
  -- 0 RETRY, 1 DEAD
  outcome TINYINT NOT NULL,
  error TEXT,
  PRIMARY KEY (event_id, token),
  CHECK (outcome IN (0, 1))
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
